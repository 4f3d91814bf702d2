package coder

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"swarmdeck/expect"
)

// What stands in for a module of Coder's server declares nothing that the module
// does not declare in the same way.
func TestStandInsDeclareWhatTheRealModulesDo(t *testing.T) {
	raw := expect.Of(os.ReadFile("../../go.mod"))(t)
	mod := expect.Of(modfile.Parse("go.mod", raw, nil))(t)
	seen := 0
	for _, r := range mod.Replace {
		at, ours := strings.CutPrefix(r.New.Path, "./drivers/coder/unused/")
		if !ours {
			continue
		}
		seen++
		t.Run(at, func(t *testing.T) {
			i := slices.IndexFunc(mod.Require, func(q *modfile.Require) bool { return q.Mod.Path == r.Old.Path })
			if i < 0 {
				t.Fatalf("%s is replaced and not required", r.Old.Path)
			}
			real, here := download(t, mod.Require[i].Mod.String()), filepath.Join("unused", at)
			err := filepath.WalkDir(here, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.IsDir() {
					return err
				}
				below, err := filepath.Rel(here, path)
				if err == nil {
					compare(t, declared(t, path), declared(t, filepath.Join(real, below)))
				}
				return err
			})
			expect.No(t, err)
		})
	}
	expect.Must(t, seen != 0, "go.mod replaces nothing by a module below unused")
}

// download gives the directory of a module, path@version, as it was published.
func download(t *testing.T, module string) string {
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // a module of its own: here it is replaced
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if e := json.Unmarshal(out, &got); err == nil {
		err = e
	}
	if got.Dir == "" {
		expect.Must(t, os.Getenv("CI") == "", "%s: %v %s", module, err, got.Error)
		t.Skipf("SKIP: %s can't be had: %v %s", module, err, got.Error)
	}
	return got.Dir
}

// compare holds what is declared here against the real declarations.
func compare(t *testing.T, here, real map[string]string) {
	for name, text := range here {
		want, there := real[name]
		switch {
		case !there:
			t.Errorf("%s is not in the real module", name)
		case text != want && text != "opaque":
			t.Errorf("%s: declared as %s, in the real module as %s", name, text, want)
		}
	}
}

// declared lists what the package in a directory exports, in a form that leaves
// out how parameters are called: functions, methods, constants, types, the
// fields of structs and the methods of interfaces. "opaque" is a type of which
// nothing can be seen.
func declared(t *testing.T, dir string) map[string]string {
	files := expect.Of(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	all := map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f := expect.Of(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					all[d.Name.Name] = shape(d.Type)
				} else if of := receiver(d); d.Name.IsExported() && ast.IsExported(of) {
					all[of+"."+d.Name.Name] = shape(d.Type)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						if s.Name.IsExported() {
							members(all, s)
						}
					case *ast.ValueSpec:
						values(all, s)
					}
				}
			}
		}
	}
	return all
}

// receiver is the name of the type that a method is of.
func receiver(d *ast.FuncDecl) (name string) {
	if d.Recv == nil {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

func values(all map[string]string, s *ast.ValueSpec) {
	for i, name := range s.Names {
		if !name.IsExported() {
			continue
		}
		all[name.Name] = "var"
		if i < len(s.Values) {
			if lit, is := s.Values[i].(*ast.BasicLit); is {
				all[name.Name] = lit.Value
			}
		}
	}
}

func members(all map[string]string, s *ast.TypeSpec) {
	name := s.Name.Name
	add := func(fields *ast.FieldList, seen *bool) {
		for _, f := range fields.List {
			for _, id := range f.Names {
				if id.IsExported() {
					all[name+"."+id.Name], *seen = shape(f.Type), true
				}
			}
		}
	}
	var seen bool
	switch of := s.Type.(type) {
	case *ast.StructType:
		add(of.Fields, &seen)
		all[name] = "struct"
	case *ast.InterfaceType:
		add(of.Methods, &seen)
		all[name] = "interface"
	default:
		all[name], seen = shape(s.Type), true
	}
	if !seen {
		all[name] = "opaque"
	}
}

// shape prints a type without the names of parameters.
func shape(of ast.Expr) string {
	ast.Inspect(of, func(n ast.Node) bool {
		f, is := n.(*ast.FuncType)
		if !is {
			return true
		}
		for _, list := range []*ast.FieldList{f.Params, f.Results} {
			if list == nil {
				continue
			}
			var bare []*ast.Field
			for _, field := range list.List {
				for range max(1, len(field.Names)) {
					bare = append(bare, &ast.Field{Type: field.Type})
				}
			}
			list.List = bare
		}
		return true
	})
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), of); err != nil {
		return err.Error()
	}
	return strings.NewReplacer("interface{}", "any", " ", "", "\n", "", "\t", "", ",)", ")").Replace(b.String())
}
