package command_test

import "fmt"

func (w *walk) servers() {
	made := w.do("mcp add files --env A=b --dir here -- prog --flag")
	if made["name"] != "files" || fmt.Sprint(made["command"]) != "[prog --flag]" {
		w.t.Errorf("%v", made)
	}
	w.do("mcp add far --url https://far.example/mcp --header Authorization=FAR_TOKEN")
	w.do("mcp servers")
	w.text("mcp servers", "files", "prog --flag", "https://far.example/mcp")
	for _, bad := range []string{"mcp add Files -- x", "mcp add files", "mcp add files --url ftp://x", "mcp add files --url http://x --env A=b", "mcp add far --url http://x --header A=1b"} {
		w.fails(2, bad)
	}
	w.do("mcp remove files")
	if code, _, _ := w.fails(1, "mcp remove files"); code != "NOT_FOUND" {
		w.t.Error(code)
	}
}
