package op_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/reach"
)

var farAway = core.Caller{Tenant: "t_acme", Name: "mallory", Kind: core.Operator, Door: core.DoorSSH, Far: true}

// leads matches what help says of a parameter that leads somewhere.
var leads = regexp.MustCompile("`[^`]*(DIR|FILE|PATH|URL|REMOTE|REPO|HOST|ADDRESS|K=V|COMMAND|LINE|NAME=VAR|VAR)[^`]*`|^(COMMAND|PATH|DIR|FILE|DEST|SRC|TARGET|HOST|URL|REMOTE)…?$")

func TestEachParameterThatLeadsSomewhereSaysWhere(t *testing.T) {
	n := 0
	for _, noun := range op.Nouns() {
		for _, o := range noun.Ops() {
			for _, p := range o.Params {
				_, path := p.Into.(*op.Path)
				_, file := p.Into.(*op.File)
				if !path && !file && !p.Makes && !slices.Contains([]string{"file", "dir", "source", "host"}, p.From) && !leads.MatchString(p.About) {
					continue
				}
				n++
				if p.Use() == "" {
					t.Errorf("%s: %s (%s): give it .names(…): what it names goes through engine/reach", o.Name, p.Name, p.About)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("%d parameters were found", n)
	}
}

func TestAPathOfAnOperationIsHeldToItsCaller(t *testing.T) {
	for _, noun := range op.Nouns() {
		for i, o := range noun.Ops() {
			for j, p := range o.Params {
				o := noun.Ops()[i]
				p = o.Params[j]
				if !p.Use().Path() || p.Use() == reach.Inside {
					continue
				}
				switch into := reflect.ValueOf(p.Into).Elem(); into.Kind() {
				case reflect.String:
					into.SetString("/etc/shadow")
				case reflect.Slice:
					into.Set(reflect.ValueOf([]string{"/etc/shadow"}))
				default:
					continue // a file that the door has opened as whoever asks may
				}
				_, err := o.Run(t.Context(), &op.Call{By: farAway})
				if err == nil || !strings.Contains(err.Error(), "/etc/shadow") || !strings.Contains(err.Error(), strings.ReplaceAll(p.Name, "-", "_")+": ") {
					t.Errorf("%s: %s: %v", o.Name, p.Name, err)
				}
			}
		}
	}
}
