package rules

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/expect"
)

var update = flag.Bool("update", false, "write sizes.txt anew where the house has shrunk")

const sizes = "rules/sizes.txt"

// What is measured only from here on, so that small parts may grow.
const (
	mostLines   = 2000 // of a package, outside tests
	mostMethods = 60   // of a type
	mostFiles   = 25   // of a package, outside tests
)

// unseen is what no reader of a page sees.
var unseen = regexp.MustCompile(`(?s)<!--.*?-->`)

// The house only shrinks. A change that must raise a figure edits it in sizes.txt, and its
// message says what for; one that is new there says so too.
func TestTheHouseOnlyShrinks(t *testing.T) {
	now := measured(t)
	data := expect.Of(os.ReadFile(sizes))(t)
	limits := map[string]int{}
	for line := range strings.Lines(string(data)) {
		if of, figure, ok := cut(line); ok {
			limits[of] = figure
		}
	}
	for _, of := range slices.Sorted(maps.Keys(now)) {
		limit, known := limits[of]
		t.Logf("%-50s %7d of %d", of, now[of], limit)
		switch {
		case !known:
			t.Errorf("%s: %d is a new figure: write it into %s, and say what for", of, now[of], sizes)
		case now[of] > limit:
			t.Errorf("%s: %d, and %s allows %d: take something away, or say what for", of, now[of], sizes, limit)
		}
	}
	if !*update || t.Failed() {
		return
	}
	var b bytes.Buffer
	for _, of := range slices.SortedFunc(maps.Keys(now), func(a, b string) int {
		kindA, _, _ := strings.Cut(a, " ")
		kindB, _, _ := strings.Cut(b, " ")
		return cmp.Or(cmp.Compare(kindA, kindB), cmp.Compare(now[b], now[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "%s %d\n", of, now[of])
	}
	expect.No(t, os.WriteFile(sizes, b.Bytes(), 0o600))
}

// cut reads a line such as "methods engine/swarm.Swarm 159".
func cut(line string) (of string, figure int, ok bool) {
	line = strings.TrimSpace(line)
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return "", 0, false
	}
	figure, err := strconv.Atoi(line[at+1:])
	return line[:at], figure, err == nil
}

// measured is how large the house is: lines outside tests of each top folder and each
// large package, methods of each large type, files of each large package; the lines of
// tests; the words of docs.
func measured(t *testing.T) map[string]int {
	now := map[string]int{}
	methods := map[string]int{}
	for _, p := range packages(t) {
		from, _ := part(p.ImportPath)
		files := slices.Concat(p.GoFiles, p.IgnoredGoFiles)
		lines := 0
		for _, base := range files {
			data := expect.Of(os.ReadFile(filepath.Join(p.Dir, base)))(t)
			lines += bytes.Count(data, []byte("\n"))
		}
		for _, base := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			data := expect.Of(os.ReadFile(filepath.Join(p.Dir, base)))(t)
			now["tests lines"] += bytes.Count(data, []byte("\n"))
		}
		top, _, _ := strings.Cut(from, "/")
		now["lines "+cmp.Or(top, ".")] += lines
		now["lines in all"] += lines
		if lines > mostLines && from != top {
			now["lines "+from] = lines
		}
		if len(files) > mostFiles {
			now["files "+from] = len(files)
		}
		each(t, p, files, parser.SkipObjectResolution, func(_ string, file *ast.File) {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
					methods["methods "+from+"."+receiver(f.Recv.List[0].Type)]++
				}
			}
		})
	}
	papers, err := filepath.Glob("docs/*.md")
	for _, paper := range append(papers, "README.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		data, bad := os.ReadFile(paper)
		err = cmp.Or(err, bad)
		expect.Must(t, err == nil, "%v", err)
		now["words docs"] += len(bytes.Fields(unseen.ReplaceAll(data, nil)))
	}
	maps.DeleteFunc(methods, func(_ string, n int) bool { return n <= mostMethods })
	maps.Copy(now, methods)
	return now
}

// receiver is the name of the type that a method is of.
func receiver(of ast.Expr) string {
	switch x := of.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
