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
	"swarmdeck/expect"
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
				if slices.Contains([]string{"text", "workspace", "source"}, p.From) { // a record, or what its door has read
					continue
				}
				if !path && !file && !p.Makes && !slices.Contains([]string{"file", "dir", "host"}, p.From) && !leads.MatchString(p.About) {
					continue
				}
				n++
				if p.Use() == "" {
					t.Errorf("%s: %s (%s): give it .names(…): what it names goes through engine/reach", o.Name, p.Name, p.About)
				}
				if p.Use() == reach.Variable && o.Role != op.Admin {
					t.Errorf("%s: %s: the engine's environment is for admins to name", o.Name, p.Name)
				}
			}
		}
	}
	expect.True(t, n >= 30, "%d parameters were found", n)
}

func TestWhatAnOperationNamesIsHeldToItsCaller(t *testing.T) {
	bad := map[reach.Use]string{reach.Path: "/etc/shadow", reach.Command: "/srv/private/bin/x", reach.Env: "PATH=/srv/private"}
	for _, noun := range op.Nouns() {
		for i := range noun.Ops() {
			for j := range noun.Ops()[i].Params {
				o := noun.Ops()[i] // with no values from before
				p := o.Params[j]
				value := bad[p.Use()]
				if value == "" {
					continue
				}
				switch into := reflect.ValueOf(p.Into).Elem(); into.Kind() {
				case reflect.String:
					into.SetString(value)
				case reflect.Slice:
					into.Set(reflect.ValueOf([]string{value}).Convert(into.Type()))
				default:
					continue // a file that the door has opened as whoever asks may
				}
				_, err := o.Run(t.Context(), &op.Call{By: farAway})
				if _, path, _ := strings.Cut("="+value, "=/"); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), strings.ReplaceAll(p.Name, "-", "_")+": ") {
					t.Errorf("%s: %s: %v", o.Name, p.Name, err)
				}
			}
		}
	}
}
