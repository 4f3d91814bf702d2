package skill

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

const navigate = `name: navigate
version: 1.0.0
description: Navigate robot to specified location
parameters_schema:
  type: object
  properties:
    location: {type: string}
    speed: {type: number, default: 1.0}
  required: [location]
returns_schema:
  type: object
  properties:
    status: {type: string}
    final_position: {type: object}
timeout: 60
max_retries: 2
dependencies: []
tags: [navigation, motion]
effects: [exec, write]
runner: {kind: exec, argv: [./navigate.sh, "${DIR}/map"], env: {MAP: "${DIR}"}}
`

func TestASkillIsWhatItsFileSays(t *testing.T) {
	s := newShelf(t)
	path := s.file("navigate.yaml", navigate)
	got := s.load(path)
	expect.Must(t, reflect.DeepEqual(got.actions(), []string{"created navigate@1.0.0"}) && got.Refused == nil, "%+v", got)
	have := expect.Of(s.Skill(home, "navigate"))(t)
	expect.True(t, !have.CreatedAt.IsZero() && have.CreatedAt.Equal(have.UpdatedAt) && len(have.Digest) == 64, "%+v", have)
	want := &Skill{
		TenantID: home, Name: "navigate", Version: "1.0.0", Description: "Navigate robot to specified location",
		ParametersSchema: core.Raw(`{"type":"object","properties":{"location":{"type":"string"},"speed":{"type":"number","default":1.0}},"required":["location"]}`),
		ReturnsSchema:    core.Raw(`{"type":"object","properties":{"status":{"type":"string"},"final_position":{"type":"object"}}}`),
		Timeout:          60, MaxRetries: 2, Dependencies: []string{}, Tags: []string{"navigation", "motion"}, Effects: []Effect{Exec, Write},
		Runner: Spec{Kind: "exec", Argv: []string{s.dir + "/navigate.sh", s.dir + "/map"}, Dir: s.dir, Env: map[string]string{"MAP": s.dir}},
		Source: path, Digest: have.Digest, CreatedAt: have.CreatedAt, UpdatedAt: have.UpdatedAt, auditSeq: have.auditSeq, contract: have.contract,
	}
	expect.True(t, reflect.DeepEqual(have, want), "\n got %+v\nwant %+v", have, want)
	expect.Is(t, have.Area(), "navigation", "area")
	got = s.load(path)
	expect.True(t, reflect.DeepEqual(got.actions(), []string{"unchanged navigate@1.0.0"}), "again: %+v", got)
	expect.True(t, reflect.DeepEqual(s.events(), []string{"skill.source.added", "skill.loaded"}), "events %q", s.events())
}

func TestDefaultsOfASkill(t *testing.T) {
	s := newShelf(t)
	s.load(s.file("a.json", `{"name": "a-1", "version": "0.0.1", "parameters_schema": {}, "returns_schema": null, "tags": null,
		"runner": {"kind": "builtin", "name": "echo"}}`))
	have := expect.Of(s.Skill(home, "a-1"))(t)
	if have.Timeout != 30 || have.MaxRetries != 0 || have.ReturnsSchema != nil || have.Dependencies == nil || have.Tags == nil || have.Effects == nil {
		t.Errorf("%+v", have)
	}
}

func TestSkillsComeBackFromTheStore(t *testing.T) {
	s := newShelf(t)
	s.file("a.yaml", navigate)
	s.file("b.yaml", skillText("detect", "1.2.0", "navigate"))
	s.load()
	before := s.Catalog(home)
	expect.Of(before[1].CheckParams(core.Raw(`{"location":"x"}`)))(t)
	updated := s.Registry(home).LastUpdated
	s.again()
	after := s.Catalog(home)
	for i := range before {
		before[i].contract, after[i].contract = nil, nil
	}
	expect.True(t, reflect.DeepEqual(before, after) && len(after) == 2, "\n got %+v\nwant %+v", after, before)
	r := s.Registry(home)
	if r.RegistryID != "default" || !r.LastUpdated.Equal(updated) || updated.IsZero() ||
		!reflect.DeepEqual(r.DependencyGraph, map[string][]string{"navigate": {}, "detect": {"navigate"}}) || r.Skills["detect"] != after[0] {
		t.Errorf("%+v", r)
	}
	sources := s.Sources(home)
	expect.True(t, len(sources) == 1 && sources[0].Path == s.dir, "%+v", sources)
}

func TestTheNewestVersionIsTheDefault(t *testing.T) {
	s := newShelf(t)
	for _, v := range []string{"1.9.0", "1.10.0", "0.99.99", "1.2.10"} {
		s.load(s.file(v+".yaml", skillText("move", v)))
	}
	s.again()
	for ref, want := range map[string]string{"move": "1.10.0", "move@1.9.0": "1.9.0", "move@0.99.99": "0.99.99"} {
		got, err := s.Skill(home, ref)
		expect.True(t, err == nil && got.Version == want, "%s: %v %v", ref, got, err)
	}
	var versions []string
	for _, v := range s.Catalog(home) {
		versions = append(versions, v.Version)
	}
	expect.Same(t, versions, []string{"1.10.0", "1.9.0", "1.2.10", "0.99.99"})
	_, err := s.Skill(home, "move@2.0.0")
	expect.True(t, errors.Is(err, core.Kind(core.NotFound)) && strings.Contains(err.Error(), "versions of it: 1.10.0, 1.9.0"), "%v", err)
	expect.Err(t, expect.Fault(s.Skill(home, "mo")), core.Kind(core.InvalidInput))
	expect.Err(t, expect.Fault(s.Skill("t_other", "move")), core.Kind(core.NotFound), "another tenant")
}

func TestABadChangeLeavesWhatWasLoaded(t *testing.T) {
	s := newShelf(t)
	path := s.file("navigate.yaml", navigate)
	s.load(path)
	before, _ := s.Skill(home, "navigate")
	s.file("navigate.yaml", strings.Replace(navigate, "timeout: 60", "timeout: 0", 1))
	got := s.load(path)
	expect.Must(t, len(got.Changes) == 0 && len(got.Refused) == 1 && got.Refused[0].Line == 15, "%+v", got)
	if after, _ := s.Skill(home, "navigate"); after != before {
		t.Errorf("%+v", after)
	}
	s.file("navigate.yaml", strings.Replace(navigate, "timeout: 60", "timeout: 61", 1))
	got = s.load(path)
	expect.Must(t, reflect.DeepEqual(got.actions(), []string{"changed navigate@1.0.0"}), "%+v", got)
	after, _ := s.Skill(home, "navigate")
	expect.True(t, after.Timeout == 61 && before.Timeout == 60 && after.CreatedAt.Equal(before.CreatedAt) && after.UpdatedAt.After(before.UpdatedAt),
		"before %+v\nafter %+v", before, after)
	want := []string{"skill.source.added", "skill.loaded", "skill.refused", "skill.mended", "skill.changed"}
	expect.True(t, reflect.DeepEqual(s.events(), want), "events %q", s.events())
}

func TestOneBadFileOfADirectoryIsRefusedAlone(t *testing.T) {
	s := newShelf(t)
	s.file("a/one.yaml", skillText("one", "1.0.0"))
	s.file("a/two.yml", skillText("two", "1.0", "one"))
	s.file("three.json", `{"name":"three","version":"1.0.0","parameters_schema":{},"dependencies":["two"],"runner":{"kind":"builtin","name":"echo"}}`)
	s.file("four.yaml", skillText("four", "1.0.0", "three"))
	s.file(".hidden.yaml", "nonsense")
	s.file(".git/x.yaml", "nonsense")
	s.file("notes.txt", "nonsense")
	got := s.load()
	expect.True(t, reflect.DeepEqual(got.actions(), []string{"created one@1.0.0"}), "%q", got.actions())
	want := []string{
		`a/two.yml:2: version: "1.0" is not allowed; allowed: X.Y.Z, three numbers of at most 9 digits without leading zeros`,
		`four.yaml:4: dependencies[0]: "three" is not allowed; allowed: a skill that is loaded`,
		`three.json:1: dependencies[0]: "two" is not allowed; allowed: a skill that is loaded`,
	}
	expect.True(t, slices.Equal(s.problems(got), want), "%s", strings.Join(s.problems(got), "\n"))
	s.file("a/two.yml", skillText("two", "1.0.0", "one"))
	if got := s.load(); !reflect.DeepEqual(got.actions(), []string{"unchanged one@1.0.0", "created two@1.0.0", "created four@1.0.0", "created three@1.0.0"}) {
		t.Errorf("%q %q", got.actions(), s.problems(got))
	}
}

func TestPathsThatAreNotThere(t *testing.T) {
	s := newShelf(t)
	empty := filepath.Join(s.dir, "empty")
	expect.No(t, os.Mkdir(empty, 0o755))
	for path, want := range map[string]string{
		filepath.Join(s.dir, "no.yaml"): "no such file",
		empty:                           "no skill file (*.yaml, *.yml, *.json) in",
		"relative.yaml":                 "an absolute path",
	} {
		got, err := s.Load(t.Context(), alice, Given{Paths: []string{s.file("ok.yaml", skillText("fine", "1.0.0")), path}})
		expect.True(t, err != nil && strings.Contains(err.Error(), want) && got.Changes == nil && len(s.Catalog(home)) == 0, "%s: %v %+v", path, err, got)
	}
	pipe := s.file("pipe.yaml", "")
	expect.No(t, os.Remove(pipe))
	expect.No(t, os.Symlink("/dev/zero", pipe))
	got, err := s.Load(t.Context(), alice, Given{Paths: []string{pipe}})
	expect.True(t, err == nil && len(got.Refused) == 1 && strings.Contains(got.Refused[0].Message, "no regular file"), "%+v %v", got, err)
}
