package tree

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestWhatRunsByLyingThereIsToldAndShownFirst(t *testing.T) {
	changes := func(paths ...string) (all []Change) {
		for _, p := range paths {
			all = append(all, Change{Path: p})
		}
		return all
	}
	lies, parts := laid(changes("a.go", "web/.vscode/tasks.json", ".envrc", "z.go"), nil)
	if want := "web/.vscode/tasks.json runs on your machine when you open the folder in VS Code or an editor made of it\n" +
		".envrc runs on your machine when you enter the directory with direnv, mise or asdf"; lies != want {
		t.Errorf("told %q", lies)
	}
	expect.True(t, reflect.DeepEqual(parts, [][]string{{"web/.vscode/tasks.json", ".envrc"}, {"a.go", "z.go"}}), "shown as %q", parts)
	lies, parts = laid(changes("a.go"), nil)
	expect.True(t, lies == "" && reflect.DeepEqual(parts, [][]string{nil}), "%q, %q", lies, parts)
	lies, parts = laid(changes(".envrc"), nil)
	expect.True(t, lies != "" && reflect.DeepEqual(parts, [][]string{{".envrc"}}), "%q, %q", lies, parts)
	lies, parts = laid(changes("a.go", "web/justfile"), []string{"justfile"})
	expect.True(t, lies == "web/justfile runs on your machine when you work on the project, whose guard names it" && len(parts) == 2, "%q, %q", lies, parts)
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("%d/.envrc", i))
	}
	if lies, parts = laid(changes(many...), nil); strings.Count(lies, "\n") != maxLies || !strings.HasSuffix(lies, "\n10 more files run on your machine") || !reflect.DeepEqual(parts, [][]string{nil}) {
		t.Errorf("%q, %q", lies, parts)
	}
}

func TestABoundHoldsHoweverADiffIsCopied(t *testing.T) {
	var b bytes.Buffer
	out := &Bounded{To: &b, Most: 10}
	_, _ = io.WriteString(out, "12345")
	_, err := io.Copy(out, strings.NewReader("6789abcdef"))
	expect.True(t, err == nil && b.String() == "123456789a" && out.Over == 5, "%q and %d more, %v", b.String(), out.Over, err)
}

func TestWhatATreeBeganWithIsTold(t *testing.T) {
	var none *Included
	expect.True(t, none.Told("ada") == "" && new(Included).Told("ada") == "", "nothing is told as something")
	var n Included
	for i := range 22 {
		n.Add(fmt.Sprintf("secrets/%d\x1b", i), 10)
	}
	got := n.Told("ada")
	expect.True(t, strings.Contains(got, " and 2 more; 220 bytes in all") && !strings.Contains(got, "\x1b"), "%v", got)
}
