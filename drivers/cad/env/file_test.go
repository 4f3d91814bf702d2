package env_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestWhatAKilledWriterLeftIsTakenUp(t *testing.T) {
	c := start(t)
	c.box("a", [3]float64{}, [3]float64{10, 20, 30})
	expect.No(t, os.WriteFile(filepath.Join(c.dir, ".a.stl.part"), make([]byte, 1<<20), 0o644))
	want := c.do("file.export", `{"file_path":"a.stl"}`)["bytes"]
	// One who writes still keeps it; a link leads nowhere.
	busy := expect.Of(os.Create(filepath.Join(c.dir, ".b.stl.part")))(t)
	defer busy.Close()
	expect.No(t, syscall.Flock(int(busy.Fd()), syscall.LOCK_EX))
	expect.No(t, os.Symlink("a.stl", filepath.Join(c.dir, ".c.stl.part")))
	c.do("file.export", `{"file_path":"b.stl"}`)
	c.do("file.export", `{"file_path":"c.stl"}`)
	var names []string
	all := expect.Of(os.ReadDir(c.dir))(t)
	for _, e := range all {
		names = append(names, e.Name())
	}
	expect.Is(t, strings.Join(names, " "), ".b.stl.part .c.stl.part a.stl b.stl c.stl")
	for _, name := range []string{"a.stl", "b.stl", "c.stl"} {
		info, err := os.Lstat(filepath.Join(c.dir, name))
		expect.True(t, err == nil && float64(info.Size()) == want && info.Mode().IsRegular(), "%s: %v, %v", name, info, err)
	}
}

func TestWhatLiesInAWritersWayIsLeftAlone(t *testing.T) {
	c := start(t)
	c.box("a", [3]float64{}, [3]float64{10, 20, 30})
	expect.No(t, syscall.Mkfifo(filepath.Join(c.dir, ".a.stl.part"), 0o644))
	dear := filepath.Join(c.dir, "dear")
	expect.No(t, os.WriteFile(dear, []byte("keep"), 0o644))
	expect.No(t, os.Link(dear, filepath.Join(c.dir, ".b.stl.part")))
	c.do("file.export", `{"file_path":"b.stl"}`)
	data, err := os.ReadFile(dear)
	expect.True(t, err == nil && string(data) == "keep", "%d bytes, %v", len(data), err)
	c.do("file.export", `{"file_path":"a.stl"}`)
	info, err := os.Lstat(filepath.Join(c.dir, "a.stl"))
	expect.True(t, err == nil && info.Mode().IsRegular(), "%v %v", info, err)
}

func TestSolidsAreWrittenAndReadBack(t *testing.T) {
	c := start(t)
	c.box("a", [3]float64{}, [3]float64{10, 20, 30})
	c.do("solid.primitive", `{"entity_id":"b","primitive_type":"sphere","radius":4,"center":[50,0,0]}`)
	volume := 6000 + c.do("measure.mass", `{"entity_id":"b"}`)["volume"].(float64)
	for _, f := range []string{"out/all.step", "out/all.stl", "out/all.3mf", "out/all.svg", "out/all.json"} {
		out := c.do("file.export", fmt.Sprintf(`{"file_path":%q,"format":%q}`, f, strings.TrimPrefix(filepath.Ext(f), ".")))
		data := expect.Of(os.ReadFile(filepath.Join(c.dir, f)))(t)
		sum := sha256.Sum256(data)
		if out["sha256"] != hex.EncodeToString(sum[:]) || out["bytes"] != float64(len(data)) || len(out["parts"].([]any)) != 2 || out["tolerance"].(float64) <= 0 {
			t.Error(out)
		}
	}
	c.do("file.export", `{"file_path":"out/text.stl","ascii":true}`)
	for _, f := range []string{"all.stl", "text.stl", "all.json"} {
		out := c.do("file.import", fmt.Sprintf(`{"file_path":"out/%s","entity_id":"in_%s"}`, f, strings.ReplaceAll(f, ".", "_")))
		got := 0.0
		for _, s := range out["solids"].([]any) {
			got += s.(map[string]any)["volume"].(float64)
		}
		c.near(f, got, volume, 1e-5)
		for range 1 {
			c.do("history.undo", `{}`)
		}
	}
	left := expect.Of(os.ReadDir(filepath.Join(c.dir, "out")))(t)
	expect.True(t, slices.IndexFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) < 0 && len(left) == 6, "%v", left)
	expect.Row(t, c.do("file.export", `{"file_path":"out/all.stl","entity_ids":["a"]}`), "replaced", true)
	c.fails(env.WorkspaceConflict, "file_path", "file.export", `{"file_path":"out/all.stl","overwrite":false}`)
}

func TestAFileOfSeveralSolidsIsImportedAgainAndAgain(t *testing.T) {
	c := start(t)
	c.box("a", [3]float64{}, [3]float64{10, 20, 30})
	c.box("b", [3]float64{50, 0, 0}, [3]float64{10, 20, 30})
	c.do("file.export", `{"file_path":"two.json"}`)
	seen := map[string]bool{}
	for round := range 3 {
		ids := c.do("file.import", `{"file_path":"two.json"}`)["entity_ids"].([]any)
		expect.Must(t, len(ids) == 2, "%v", ids)
		for _, id := range ids {
			expect.True(t, !seen[id.(string)], "%s is given twice", id)
			seen[id.(string)] = true
		}
		if round == 1 {
			c.do("history.undo", `{}`) // an id that was undone is not given again
		}
	}
	c.near("volume", c.do("workspace.status", `{"workspace_id":"main"}`)["volume"], 6*6000, 1e-6)
}

func TestASolidThatSTEPCanNotTakeCostsNoKernel(t *testing.T) {
	c := start(t)
	// A tetrahedron beside a smaller one turned inside out: a void in nothing.
	odd := `{"format":"swarmdeck-solids","version":1,"unit":"mm","parts":[{"name":"odd","tolerance":0,
		"vertices":[[0,0,0],[9,0,0],[0,9,0],[0,0,9],[20,0,0],[21,0,0],[20,1,0],[20,0,1]],
		"triangles":[[0,2,1],[0,1,3],[0,3,2],[1,2,3],[4,5,6],[4,7,5],[4,6,7],[5,7,6]]}]}`
	expect.No(t, os.WriteFile(filepath.Join(c.dir, "odd.json"), []byte(odd), 0o600))
	c.do("file.import", `{"file_path":"odd.json","entity_id":"odd"}`)
	c.fails(env.InvalidParameter, "entity_ids", "file.export", `{"file_path":"odd.step"}`)
	expect.Row(t, c.do("agent.metrics", `{}`), "kernels_lost", 0.0)
}

func TestFilesStayInTheirDirectory(t *testing.T) {
	c := start(t)
	c.box("a", [3]float64{}, [3]float64{1, 1, 1})
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(c.dir, "link")); err != nil {
		t.Skip(err)
	}
	expect.No(t, os.WriteFile(filepath.Join(outside, "x.stl"), []byte("secret"), 0o600))
	expect.No(t, os.Mkdir(filepath.Join(c.dir, "folder.stl"), 0o700))
	expect.No(t, os.WriteFile(filepath.Join(c.dir, "file.stl"), nil, 0o600))
	before := c.state("main")
	for _, path := range []string{"../x.stl", "/tmp/x.stl", "link/x.stl", "a/../../x.stl", "", ".", "x\u0000.stl", "folder.stl", strings.Repeat("d/", 300) + "x.stl", strings.Repeat("x", 300) + ".stl", "file.stl/x.stl"} {
		for _, method := range []string{"file.export", "file.import"} {
			r := c.try(method, string(core.MustEncode(map[string]string{"file_path": path, "format": "STL"})))
			expect.True(t, r.Error != nil && r.Error.Code == env.InvalidParameter && r.Error.Data.Field == "file_path", "%s %q: %+v", method, path, r.Error)
		}
	}
	expect.Is(t, string(expect.Of(os.ReadFile(filepath.Join(outside, "x.stl")))(t)), "secret")
	expect.Is(t, c.state("main"), before, "something changed")
}

func TestFilesThatCanNotBeRead(t *testing.T) {
	c := start(t)
	for name, content := range map[string]string{
		"short.stl": "solid", "open.stl": "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n",
		"no.json": `{"format":"other"}`, "x.step": "ISO-10303-21;", "empty.stl": "",
	} {
		expect.No(t, os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600))
	}
	before := c.state("main")
	for name, code := range map[string]env.Code{
		"short.stl": env.ImportFailed, "open.stl": env.ImportFailed, "no.json": env.ImportFailed, "empty.stl": env.ImportFailed,
		"x.step": env.UnsupportedByKernel, "missing.stl": env.FileNotFound, "x.doc": env.UnsupportedFormat,
	} {
		r := c.try("file.import", fmt.Sprintf(`{"file_path":%q}`, name))
		expect.True(t, r.Error != nil && r.Error.Code == code && r.Error.Data.Suggestion != "", "%s: %+v, want %d", name, r.Error, code)
	}
	c.fails(env.OperationInvalid, "entity_ids", "file.export", `{"file_path":"x.stl"}`)
	expect.Is(t, c.state("main"), before, "something changed")
}

func TestAnImportIsReplayedWithoutItsFile(t *testing.T) {
	journal := func(o *env.Options) { o.Journal = true }
	c := start(t, journal)
	first := c.try("workspace.create", `{"workspace_name":"main","base_workspace_id":""}`).Result.Metadata.Entry
	box := c.try("solid.primitive", `{"entity_id":"a","primitive_type":"box","width":2,"depth":3,"height":4}`).Result.Metadata.Entry
	c.do("file.export", `{"file_path":"a.stl"}`)
	imported := c.try("file.import", `{"file_path":"a.stl","entity_id":"b"}`).Result.Metadata.Entry
	moved := c.try("solid.transform", fmt.Sprintf(`{"entity_id":"b","rotate":{"axis_point":[0,0,0],"axis_direction":[0,0,1],"angle":%g}}`, math.Pi)).Result.Metadata.Entry
	d := start(t, journal)
	d.do("workspace.load", fmt.Sprintf(`{"workspace_id":"main","from":1,"entries":[%s,%s,%s,%s]}`, first, box, imported, moved))
	d.near("b", d.do("measure.mass", `{"entity_id":"b"}`)["volume"], 24, 1e-6)
}

func TestADirectoryMadeAnewIsUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	expect.No(t, os.Mkdir(dir, 0o700))
	c := start(t, func(o *env.Options) { o.Dir = dir })
	c.box("a", [3]float64{}, [3]float64{1, 1, 1})
	c.do("file.export", `{"file_path":"a.stl"}`)
	expect.No(t, os.RemoveAll(dir))
	r := c.try("file.export", `{"file_path":"a.stl"}`)
	expect.True(t, r.Error != nil, "it was written into a directory that is not there")
	expect.No(t, os.Mkdir(dir, 0o700))
	c.do("file.export", `{"file_path":"a.stl"}`)
	expect.Of(os.Stat(filepath.Join(dir, "a.stl")))(t)
}
