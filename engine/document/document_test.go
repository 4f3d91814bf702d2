package document_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/expect"
)

const most = 64 << 10

// read reads a small document of every kind of field.
func read(file, text string) (map[string]any, error) {
	r := document.NewReader(file)
	root, ok := r.Parse([]byte(text), most)
	if !ok {
		return nil, r.Err()
	}
	got := map[string]any{}
	r.Object(root, map[string]func(document.Value){
		"text":  func(v document.Value) { got["text"] = r.Text(v) },
		"exact": func(v document.Value) { got["exact"], _ = r.String(v) },
		"count": func(v document.Value) { got["count"] = r.Range(v, 1, 10) },
		"flag":  func(v document.Value) { got["flag"] = r.Bool(v) },
		"list":  func(v document.Value) { got["list"] = document.Each(r, v, r.Text) },
		"texts": func(v document.Value) { got["texts"] = r.Texts(v) },
		"raw":   func(v document.Value) { got["raw"] = string(r.Raw(v)) },
		"span":  func(v document.Value) { got["span"] = r.Duration(v) },
	}, "text")
	if err := r.Err(); err != nil {
		return nil, err
	}
	return got, nil
}

func TestYAMLAndJSONReadTheSame(t *testing.T) {
	want := map[string]any{
		"text": "a: b", "exact": "é\n\"", "count": 7, "flag": true, "list": []string{"x", "1", "false"},
		"texts": map[string]string{"A": "1", "B": ""}, "span": 90 * time.Second,
		"raw": `{"n":null,"i":12,"f":1.5,"big":18446744073709551615,"l":[true,{"a b":"c"},[]],"s":"1"}`,
	}
	yaml := `
text: 'a: b'
exact: "é\n\""
count: 7
flag: true
list: [x, 1, false]
texts: {A: 1, B: ""}
raw: {n: null, i: 12, f: 1.5, big: 18446744073709551615, l: [true, {a b: c}, []], s: "1"}
span: 1m30s
`
	json := "{\n\t\"text\": \"a: b\",\n\"exact\": \"\\u00e9\\n\\\"\", \"count\": 7, \"flag\": true, \"list\": [\"x\", 1, false]," +
		"\n\"texts\": {\"A\": 1, \"B\": \"\"}, \"raw\": " + want["raw"].(string) + ",\n\"span\": \"1m30s\"}"
	for file, text := range map[string]string{"a.yaml": yaml, "a.json": json, "A.JSON": json} {
		got, err := read(file, text)
		expect.True(t, err == nil && reflect.DeepEqual(got, want), "%s: %v\n got %v\nwant %v", file, err, got, want)
	}
}

func TestProblemsNameTheirPlace(t *testing.T) {
	yaml := `
count: 11
exact: 5
flag: maybe
list:
  - x
  - {a: b}
raw:
  a: .inf
  b: &x 1
  c: !!binary x
texts: [a]
span: soon
nothing: 1
`
	json := `{
"count": 11,
"exact": 5,
"flag": "maybe",
"list": [
  "x",
  {"a": "b"}],
"raw": {
  "a": 1, "b":
  2},
"texts":
  ["a"],
"span": "soon",
"nothing": 1}`
	for file, c := range map[string]struct {
		text string
		want []string
	}{
		"a.yaml": {yaml, []string{
			"2: count: 11 is not allowed; allowed: a whole number, 1-10", "2: text: missing", "3: exact: want text, got a number", "4: flag: want true or false, got text",
			"7: list[1]: want text, got a mapping", "9: raw.a: want a value that JSON has, got something else",
			"10: raw.b: want a value that JSON has, got an anchor or alias, which is not allowed", "11: raw.c: want a value that JSON has, got something else",
			"12: texts: want a mapping, got a list", `13: span: "soon" is not allowed; want a duration`, "14: nothing: unknown field; allowed: count, exact, flag, list, raw, span, text, texts",
		}},
		"a.json": {json, []string{
			"1: text: missing", "2: count: 11 is not allowed; allowed: a whole number, 1-10", "3: exact: want text, got a number", "4: flag: want true or false, got text",
			"7: list[1]: want text, got a mapping", "12: texts: want a mapping, got a list", `13: span: "soon" is not allowed`, "14: nothing: unknown field",
		}},
	} {
		_, err := read(file, c.text)
		var e *core.Error
		expect.Must(t, errors.As(err, &e) && e.Code == core.InvalidInput, "%v", err)
		lines := strings.Split(err.Error(), "\n")
		ok := len(lines) == len(c.want)
		for i := range lines {
			ok = ok && strings.HasPrefix(lines[i], file+":"+c.want[i])
		}
		expect.True(t, ok, "%s:\n got %s\nwant %s", file, strings.Join(lines, "\n     "), strings.Join(c.want, "\n     "))
		problems, _ := e.Details["problems"].([]document.Problem)
		expect.Is(t, len(problems), len(lines), e.Details)
	}
}

func TestWhatIsNoDocumentIsRefusedClearly(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "1: file: empty; want a mapping",
		"\n \n":                       "1: file: empty; want a mapping",
		"{\n\"text\": \"a\",\n}":      "3: file: not valid JSON: ",
		"{\"text\": 1,\n\"text\": 2}": "2: file: not valid JSON: duplicate object member name \"/text\"",
		"{\"text\": 1}\n{}":           "2: file: a second document; want one",
		"{\"text\": 1}\nx":            "2: file: not valid JSON: ",
		"[1]":                         "1: file: want a mapping, got a list",
		"{'text': 1}":                 "1: file: not valid JSON: ",
		"{\"text\":\n\n\"\xff\"}":     "3: file: not valid UTF-8",
		strings.Repeat("[", 1000):     "1: file: nested too deeply",
		`{"text":"` + `\ud800"}`:      "1: file: not valid JSON: ",
		strings.Repeat(" ", most+1):   "1: file: larger than 65536 bytes",
		"{\"text\": \"" + strings.Repeat("x", most-20) + "\"": "1: file: not valid JSON: ",
	} {
		_, err := read("a.json", text)
		expect.True(t, err != nil && strings.HasPrefix(err.Error(), "a.json:"+want), "%.40q: %v, want %s", text, err, want)
	}
	_, err := read("a.yaml", "text: a\n"+strings.Repeat("\n", 10_000))
	expect.True(t, err != nil && err.Error() == "a.yaml:10001: file: more than 10000 lines", "%v", err)
	long := `{"text": "` + strings.Repeat("x", 40<<10) + `"}`
	expect.Is(t, len(expect.Of(read("a.json", long))(t)["text"].(string)), 40<<10, "a long line of JSON")
}

func TestAReportIsBounded(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "f%d: 1\n", i)
	}
	_, err := read("a.yaml", text.String())
	n := strings.Count(err.Error(), "\n")
	expect.True(t, n == 49, "%d lines", n+1)
	_, err = read("a.yaml", "text: a\ncount: "+strings.Repeat("9", 10_000))
	expect.True(t, err != nil && len(err.Error()) <= 300, "%.400s", err)
}

func TestProblemsOfSeveralFilesStayTogether(t *testing.T) {
	p := func(file string, line int) document.Problem {
		return document.Problem{File: file, Line: line, Field: "f", Message: "m"}
	}
	err := document.Err([]document.Problem{p("b", 9), p("a", 2), p("b", 1), p("a", 1)})
	expect.True(t, err.Error() == "b:1: f: m\nb:9: f: m\na:1: f: m\na:2: f: m", "%s", err)
}

func TestFindGoesAsFarAsItCan(t *testing.T) {
	r := document.NewReader("a.yaml")
	root, _ := r.Parse([]byte("a:\n  - b:\n      c: 1\n"), most)
	for path, want := range map[string]int{"a": 2, "a 0 b c": 3, "a 0 b d": 3, "a 5": 2, "x": 1} {
		expect.Is(t, root.Find(strings.Fields(path)...).Line(), want, path, "line")
	}
	if v := root.Find("a", "0", "b"); v.Path() != "a[0].b" || v.Kind() != document.Mapping {
		t.Errorf("%s %s", v.Path(), v.Kind())
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"text: a\nraw: {a: [1, .5, 0x1f, 1e3, ~]}", "{\"text\": \"\\u00e9\", \"raw\": [1e5, -0, {}]}", "a: &b [*b]", "<<: {a: b}", "? a\n: b", "- - - -",
		"{[{[", "raw: |\n  b\n  c", "\xff", "raw: 1_000", "raw: !!float 5", "raw: 2001-01-01", "text: \"\\x00\\ud800\"", "raw: {1: 2, true: 3, a: 4}", "[]\n", "\"a\":", "%YAML 1.2\n---\nraw: .nan",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, file := range []string{"a.yaml", "a.json"} {
			r := document.NewReader(file)
			root, ok := r.Parse([]byte(text), most)
			expect.Must(t, ok == (r.Err() == nil), "%q: %v %v", text, ok, r.Err())
			if !ok {
				continue
			}
			raw := r.Raw(root)
			expect.Must(t, (raw == nil) == (r.Err() != nil) && (raw == nil || raw.IsValid()), "%q: %q %v", text, raw, r.Err())
			lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r")
			for _, p := range r.Problems() {
				expect.Must(t, p.Line >= 1 && p.Line <= lines && p.Field != "" && p.Message != "" && len(p.Message) <= 1000, "%q: %+v", text, p)
			}
			if raw != nil && file == "a.json" {
				if canon, err := core.Canonical(raw); err == nil {
					want, err := core.Canonical([]byte(text))
					expect.Must(t, err == nil && string(want) == string(canon), "%q: %s %v", text, canon, err)
				}
			}
		}
	})
}
