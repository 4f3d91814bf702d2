// Package freecadtest opens the files that a kernel writes in FreeCAD, the way
// a person would: no kernel of ours takes part in reading them.
package freecadtest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"swarmdeck/drivers/cad/freecad"
	"swarmdeck/expect"
)

//go:embed open.py
var opener string

// File is what FreeCAD finds in a file.
type File struct {
	Solids  []Solid  `json:"solids"`  // of STEP, STL and 3MF
	Unit    string   `json:"unit"`    // of 3MF
	Library *Library `json:"library"` // of 3MF, nil where lib3mf is not installed
	Drawing          // of SVG
}

// Solid is one body; a mesh of several shells is one Solid.
type Solid struct {
	Name   string  `json:"name"`
	Closed bool    `json:"closed"` // all its shells
	Valid  bool    `json:"valid"`
	Volume float64 `json:"volume"` // mm³
	Mesh   *Mesh   `json:"mesh"`   // of STL and 3MF
}

// Mesh is what FreeCAD says of facets, after it has joined equal corners.
type Mesh struct {
	Solid        bool `json:"solid"`
	NonManifold  bool `json:"non_manifold"`
	SelfCrossing bool `json:"self_crossing"`
	Turned       bool `json:"turned"` // some facets have their inside out
	Facets       int  `json:"facets"`
}

// Library is what lib3mf, the format's own library, says in its strict mode.
type Library struct {
	Warnings int `json:"warnings"`
	Objects  []struct {
		Name     string `json:"name"`
		Manifold bool   `json:"manifold"` // and its outside out
		Facets   int    `json:"facets"`
	} `json:"objects"`
}

// Drawing is the wires of an SVG.
type Drawing struct {
	Wires  int        `json:"wires"`
	Closed int        `json:"closed"`
	Edges  int        `json:"edges"`
	Length float64    `json:"length"` // mm, of all together
	Box    [4]float64 `json:"box"`    // left, bottom, right and top in mm
	Valid  bool       `json:"valid"`
}

// Find looks for FreeCAD once.
var Find = sync.OnceValues(func() (freecad.Installation, error) { return freecad.Find(context.Background(), nil) })

// Need skips a test where FreeCAD is not installed.
func Need(t testing.TB) freecad.Installation {
	t.Helper()
	i, err := Find()
	if errors.Is(err, freecad.ErrNotFound) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return i
}

// Open reads files by their ending (.step, .stl, .3mf, .svg) and answers what
// is in each, by its base name.
func Open(t testing.TB, files ...string) map[string]File {
	t.Helper()
	i := Need(t)
	paths := expect.Of(json.Marshal(i.Paths))(t)
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), i.Python, append([]string{"-I", "-B", "-c", opener, string(paths)}, files...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + home}
	cmd.Dir, cmd.Stderr = home, os.Stderr
	answer, err := cmd.Output()
	expect.No(t, err, "FreeCAD opens", files)
	var out map[string]File
	expect.No(t, json.Unmarshal(answer, &out), answer)
	return out
}
