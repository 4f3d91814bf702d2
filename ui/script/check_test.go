package script

import (
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

func TestAnUnknownWordIsFoundBeforeAnythingRuns(t *testing.T) {
	for script, want := range map[string]string{
		"task list\n! task show x\n? store check\n":      "",
		"[unix] exec true\n[!windows] ! screen /x/\n":    "",
		"# frobnicate\n\n  # indented\nversion # frob\n": "",
		"$TOOL x\n'quoted word' y\n":                     "",
		"version\n-- file --\nfrobnicate\n":              "",
		"version\nfrobnicate\n":                          `t:2: unknown word "frobnicate"`,
		"[unix] ! frobnicate\n":                          `t:1: unknown word "frobnicate"`,
		"[short] version\n":                              "t:1: [short]: is known to tests only",
		"version\r\nnope":                                `t:2: unknown word "nope"`,
	} {
		expect.Is(t, errText((&run{name: "t", outer: &command.Env{}}).check(script)), want, script)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAMemberOfJSONIsFoundByItsPath(t *testing.T) {
	v := map[string]any{
		"name": "x", "n": 1.5, "on": true, "none": nil,
		"action": map[string]any{"args": map[string]any{"path": "a b"}}, "list": []any{"first", map[string]any{"id": "second"}},
	}
	for path, want := range map[string]string{
		"name": "x", "n": "1.5", "on": "true", "none": "null", "action.args.path": "a b", "list.0": "first", "list.1.id": "second",
		"action.args": `{"path":"a b"}`,
	} {
		got, ok := member(v, path)
		expect.True(t, ok && got == want, "%s: %q %v, want %q", path, got, ok, want)
	}
	for _, path := range []string{"", "nothing", "list.2", "list.-1", "list.x", "name.more"} {
		got, ok := member(v, path)
		expect.True(t, !ok, "%s: found %q", path, got)
	}
}

func TestATaskThatIsOverOtherwiseIsNotWaitedFor(t *testing.T) {
	const record = `{"status":"failed","attempt":2,"error_code":"killed"}`
	if ok, err := matches("task", []byte(record), []string{"status=failed", "attempt=2"}); !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	expect.Says(t, expect.Fault(matches("task", []byte(record), []string{"status=succeeded"})), "it is over: status=failed error_code=killed")
	ok, err := matches("task", []byte(`{"status":"running"}`), []string{"status=succeeded"})
	expect.True(t, !ok && err == nil, "%v %v", ok, err)
	ok, err = matches("agent", []byte(`{"status":"busy","waiting":"ap_1"}`), []string{"status=waiting for you"})
	expect.True(t, ok && err == nil, "%v %v", ok, err)
}

func TestVariablesHavePlainNames(t *testing.T) {
	for name, want := range map[string]bool{"T": true, "task_1": true, "_": true, "": false, "1T": false, "A-B": false, "A=B": false} {
		expect.Is(t, variable(name), want, name)
	}
}

func FuzzCheckNeverPanics(f *testing.F) {
	f.Add("version\n[unix] ! task list\n-- a --\nx")
	f.Add("[")
	f.Fuzz(func(_ *testing.T, text string) {
		for _, remote := range []bool{false, true} {
			_ = (&run{name: "t", outer: &command.Env{Remote: remote}}).check(text)
		}
	})
}
