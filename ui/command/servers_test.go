package command_test

import (
	"fmt"

	"swarmdeck/expect"
)

func (w *walk) servers() {
	made := w.do("mcp add files --env A=b --dir here -- prog --flag")
	expect.True(w.t, made["name"] == "files" && fmt.Sprint(made["command"]) == "[prog --flag]", "%v", made)
	w.do("mcp add far --url https://far.example/mcp --header Authorization=FAR_TOKEN")
	w.do("mcp servers")
	w.text("mcp servers", "files", "prog --flag", "https://far.example/mcp")
	for _, bad := range []string{"mcp add Files -- x", "mcp add files", "mcp add files --url ftp://x", "mcp add files --url http://x --env A=b", "mcp add far --url http://x --header A=1b"} {
		w.fails(2, bad)
	}
	w.do("mcp remove files")
	code, _, _ := w.fails(1, "mcp remove files")
	expect.True(w.t, code == "NOT_FOUND", "%v", code)
}
