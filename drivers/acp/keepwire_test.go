package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"swarmdeck/drivers/drivertest"
	"swarmdeck/expect"
)

// Bounds of what is kept of a wire. What agents offer, such as commands, is left out:
// nothing of it is looked at.
const (
	mostItems = 20       // of one list
	mostText  = 2000     // bytes of one text
	mostWire  = 64 << 10 // bytes of one file
)

func wirePath(agent, scenario string) string {
	return filepath.Join("testdata", "wires", agent, scenario+".wire")
}

// keep writes the wire of all scenarios, each from where it began, given in bytes.
// $DIR stands for the agent's directory, $ELSEWHERE for all others of this machine.
func (d *desk) keep(agent string, begins []int) {
	d.t.Helper()
	data := d.tape.read()
	begins[0] = 0
	elsewhere := regexp.MustCompile(`(` + strings.Join([]string{
		regexp.QuoteMeta(filepath.Dir(drivertest.Installed(d.t))), regexp.QuoteMeta(filepath.Clean(os.TempDir())), regexp.QuoteMeta(filepath.Clean(os.Getenv("HOME"))),
	}, "|") + `)/[^"\\\s:;,'<>)]*`)
	for i, sc := range scenarios() {
		end := len(data)
		if i+1 < len(begins) {
			end = begins[i+1]
		}
		var out bytes.Buffer
		for line := range strings.Lines(string(data[begins[i]:end])) {
			line = strings.TrimSuffix(line, "\n")
			if mark, json, ok := strings.Cut(line, " "); ok {
				line = mark + " " + shortened(json)
			}
			fmt.Fprintln(&out, elsewhere.ReplaceAllString(strings.ReplaceAll(line, d.dir, "$DIR"), "$$ELSEWHERE"))
		}
		said := shows(readWire(d.t, data[begins[i]:end])).said
		expect.True(d.t, !elsewhere.MatchString(said), "the wire of %s, %s has a path of this machine in pieces: %s", agent, sc.name, said)
		expect.True(d.t, out.Len() <= mostWire, "the wire of %s, %s has %d bytes", agent, sc.name, out.Len())
		d.no(os.MkdirAll(filepath.Dir(wirePath(agent, sc.name)), 0o755))
		d.no(os.WriteFile(wirePath(agent, sc.name), out.Bytes(), 0o644))
	}
}

// shortened is a message within the bounds, the very same where it already is.
func shortened(text string) string {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return text[:min(len(text), mostText)]
	}
	short, cut := within(v)
	if !cut {
		return text
	}
	data, err := json.Marshal(short)
	if err != nil {
		return text
	}
	return string(data)
}

func within(v any) (short any, cut bool) {
	switch v := v.(type) {
	case string:
		if len(v) > mostText {
			return strings.ToValidUTF8(v[:mostText], "") + "…", true
		}
	case []any:
		if len(v) > mostItems {
			v, cut = v[:mostItems], true
		}
		for i := range v {
			s, c := within(v[i])
			v[i], cut = s, cut || c
		}
		return v, cut
	case map[string]any:
		if v["sessionUpdate"] == "available_commands_update" {
			return map[string]any{"sessionUpdate": v["sessionUpdate"], "availableCommands": []any{}}, true
		}
		for key := range v {
			s, c := within(v[key])
			v[key], cut = s, cut || c
		}
	}
	return v, cut
}
