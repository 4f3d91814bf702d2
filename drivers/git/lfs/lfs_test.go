package lfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/git/lfs"
	"swarmdeck/expect"
)

const oid = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4" // of "hi\n"

func text(size string) string {
	return "version https://git-lfs.github.com/spec/v1\noid sha256:" + oid + "\nsize " + size + "\n"
}

func TestAPointerIsWhatItsSpecificationSays(t *testing.T) {
	for s, want := range map[string]bool{
		text("3"): true, text("0"): true, text("03"): false, text("-3"): false, text("3")[1:]: false, strings.TrimSuffix(text("3"), "\n"): false,
		text("3") + "x y\n": false, strings.ToUpper(text("3")): false, "": false,
		strings.Replace(text("3"), "oid", "ext-0-x sha256:a\noid", 1): true, strings.Replace(text("3"), "oid sha256", "oid md5", 1): false,
		strings.Replace(text("3"), "size", "oid sha256:"+oid+"\nsize", 1): false, text("3") + strings.Repeat("z", lfs.MaxPointer): false,
	} {
		p, ok := lfs.Parse([]byte(s))
		expect.Is(t, ok, want, s)
		if ok && !p.Extended && string(p.Text()) != s {
			t.Errorf("%q became %q", s, p.Text())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text("3")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, ok := lfs.Parse(data); ok && !p.Extended && !bytes.Equal(p.Text(), data) {
			t.Errorf("%q became %q", data, p.Text())
		}
	})
}

// said is a talk in packets; "" is a flush.
func said(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			b.WriteString("0000")
		} else {
			fmt.Fprintf(&b, "%04x%s", len(p)+4, p)
		}
	}
	return b.String()
}

var hello = []string{"git-filter-client\n", "version=2\n", "", "capability=clean\n", "capability=smudge\n", ""}

func talk(t *testing.T, o lfs.Objects, parts ...string) string {
	t.Helper()
	var out bytes.Buffer
	expect.No(t, o.Serve(strings.NewReader(said(append(append([]string{}, hello...), parts...)...)), &out))
	answer, ok := strings.CutPrefix(out.String(), said("git-filter-server\n", "version=2\n", "", "capability=clean\n", "capability=smudge\n", ""))
	expect.Must(t, ok, "%q", out.String())
	return answer
}

func TestContentsBecomePointersAndPointersContents(t *testing.T) {
	o := lfs.Objects{Keep: filepath.Join(t.TempDir(), "objects")}
	expect.Is(t, talk(t, o, "command=clean\n", "pathname=a\n", "", "h", "i\n", ""), said("status=success\n", "", text("3"), "", ""))
	expect.Is(t, string(expect.Of(os.ReadFile(filepath.Join(o.Keep, oid[:2], oid[2:4], oid)))(t)), "hi\n", "the object holds")
	expect.Is(t, talk(t, o, "command=smudge\n", "pathname=a\n", "", text("3"), ""), said("status=success\n", "", "hi\n", "", ""))
	for what, in := range map[string]string{"clean": text("3"), "smudge": "no pointer"} {
		expect.Is(t, talk(t, o, "command="+what+"\n", "pathname=a\n", "", in, ""), said("status=success\n", "", in, "", ""), what)
	}
	expect.Is(t, talk(t, o, "command=clean\n", "pathname=a\n", "", ""), said("status=success\n", "", "", ""), "nothing is not nothing")
}

// A file of some megabytes goes in many packets.
func TestALargeContentIsWhole(t *testing.T) {
	o := lfs.Objects{Keep: filepath.Join(t.TempDir(), "objects")}
	packet := strings.Repeat("x", 65516)
	parts := []string{"command=clean\n", "pathname=a\n", ""}
	for range 50 {
		parts = append(parts, packet)
	}
	answer := talk(t, o, append(parts, "")...)
	at, end := strings.Index(answer, "version"), strings.LastIndex(answer, "\n")
	p, ok := lfs.Parse([]byte(answer[at : end+1]))
	expect.Must(t, ok && p.Size == 50*65516, "%q", answer)
	whole := talk(t, o, "command=smudge\n", "pathname=a\n", "", string(p.Text()), "")
	expect.Is(t, strings.Count(whole, "x"), 50*65516, "bytes came back")
}

func TestAnObjectIsPutWhereItsContentIsRight(t *testing.T) {
	from, into := t.TempDir(), t.TempDir()
	p := lfs.Pointer{OID: oid, Size: 3}
	path := filepath.Join(from, oid[:2], oid[2:4], oid)
	expect.No(t, os.MkdirAll(filepath.Dir(path), 0o755))
	o := lfs.Objects{Keep: into, Read: []string{from}}
	old := filepath.Join(into, ".swarmdeck-1")
	expect.No(t, errors.Join(os.WriteFile(old, nil, 0o600), os.Chtimes(old, time.Time{}, time.Now().Add(-48*time.Hour))))
	for _, content := range []string{"ho\n", "hi\n!", "hi\n"} {
		want := content == "hi\n"
		expect.No(t, os.WriteFile(path, []byte(content), 0o644))
		err := o.Put(p)
		expect.True(t, (err == nil) == want && (lfs.Objects{Keep: into}).Has(p) == want, "%q: %v", content, err)
		rest, _ := filepath.Glob(filepath.Join(into, ".swarmdeck-*"))
		expect.True(t, len(rest) == 0, "%v is left", rest)
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(said(append(append([]string{}, hello...), "command=clean\n", "pathname=a\n", "", "hi\n", "")...)))
	f.Add([]byte(said(append(append([]string{}, hello...), "command=smudge\n", "pathname=a\n", "", text("3"), "")...)))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_ = lfs.Objects{}.Serve(bytes.NewReader(data), &bytes.Buffer{})
	})
}
