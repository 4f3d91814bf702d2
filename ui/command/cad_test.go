package command_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// cads uses the commands about CAD agents.
func (w *walk) cads() {
	t := w.t
	all := w.objects("cad roles")
	expect.True(t, len(all) == 6 && all[0]["name"] == "designer" && all[0]["allowed_operations"] != nil, "roles: %v", all)
	expect.Row(t, w.do("cad roles validator"), "name", "validator", "builtin", true)
	w.text("cad roles", "integrator", "built in")
	expect.Row(t, w.do("cad agent create mona --role modeler --workspace ws_part"), "agent_id", "mona", "status", "idle", "workspace_id", "ws_part", "operation_count", 0.0)
	w.do("cad agent create vera --role validator")
	for line, want := range map[string]string{
		"cad agent create mona --role modeler":                            "CONFLICT agent_id",
		"cad agent create otto --role painter":                            "INVALID_INPUT role_name",
		"cad agent create otto":                                           "INVALID_INPUT role",
		"cad agent create --role modeler":                                 "INVALID_INPUT id",
		"cad agent create otto --role modeler --workspace a/b":            "INVALID_INPUT workspace_id",
		"cad agent create otto --role modeler --existing":                 "NOT_FOUND workspace_id",
		"cad agent create otto --role modeler --kernel acis":              "INVALID_INPUT kernel",
		"cad agent show otto":                                             "NOT_FOUND agent_id",
		"cad op vera solid.extrude {}":                                    "DENIED method",
		`cad op mona entity.create_point '{"coordinates":[1e9,0]}'`:       "INVALID_INPUT coordinates",
		"cad op mona entity.create_point '[]'":                            "INVALID_INPUT params",
		`cad op mona entity.query '{"entity_id":"none"}'`:                 "NOT_FOUND entity_id",
		"cad metrics otto":                                                "NOT_FOUND agent_id",
		`cad message mona otto request '{"request_type":"query_status"}'`: "INVALID_INPUT to_agent_id",
		`cad message mona vera request '{"request_type":"sing"}'`:         "INVALID_INPUT content.request_type",
		"cad messages otto":                                               "NOT_FOUND agent_id",
		"cad messages vera --mark-read --match x":                         "INVALID_INPUT mark_read",
		"cad workspace show nowhere":                                      "NOT_FOUND workspace_id",
		"cad workspace create ws_part":                                    "CONFLICT workspace_id",
		"cad workspace create ws_x --base nowhere":                        "NOT_FOUND workspace_id",
		"cad controller max-concurrent 51":                                "INVALID_INPUT max_concurrent_agents",
		"cad controller max-concurrent few":                               "INVALID_INPUT max_concurrent_agents",
	} {
		w.refuses(line, want)
	}
	made := w.do(`cad op mona entity.create_circle '{"center":[0,0],"radius":10}'`)
	data, _ := made["data"].(map[string]any)
	meta, _ := made["metadata"].(map[string]any)
	if made["status"] != "success" || data["entity_id"] != "ws_part_circle_1" || meta["operation_type"] != "entity.create_circle" || meta["execution_time_ms"] == nil || meta["seq"] != 2.0 {
		t.Errorf("op: %v", made)
	}
	solid := w.do(`cad op mona solid.extrude '{"entity_ids":["ws_part_circle_1"],"distance":5}'`)
	v := solid["data"].(map[string]any)["volume"].(float64)
	expect.True(t, v >= 1569 && v <= 1572, "volume %v", v)
	w.text(`cad op mona entity.list '{"entity_type":"solid"}'`, "entity.list by mona in ws_part: done", "total_count  1")
	if got := w.do("cad agent show mona"); got["success_count"] != 4.0 || got["error_count"] != 2.0 || fmt.Sprint(got["created_entities"]) != "[ws_part_circle_1 ws_part_solid_1]" {
		t.Errorf("show: %v", got)
	}
	expect.Row(t, w.do("cad agent list --kind modeler"), "agent_id", "mona")
	w.text("cad agent list", "mona", "modeler", "ws_part", "VIOLATIONS")
	if got := w.do("cad metrics mona"); got["success_rate"] == nil || got["learning_status"] != "insufficient_data" || len(got["operations"].([]any)) < 3 {
		t.Errorf("metrics: %v", got)
	}

	w.do("agent create archie --project p --role r --task x -- sh -c 'exec cat'")
	expect.Row(t, w.do("cad agent bind mona --fleet archie"), "fleet_agent", "archie")
	w.text("cad agent list", "FLEET", "archie")
	w.refuses("cad agent bind vera --fleet archie", "CONFLICT fleet")
	w.refuses("cad agent bind vera --fleet nobody", "NOT_FOUND agent")
	w.refuses("cad agent bind vera", "INVALID_INPUT fleet")
	expect.Row(t, w.do("cad agent bind mona --free"), "fleet_agent", nil)
	w.do("cad agent bind vera --fleet archie")
	w.do("agent delete archie --yes")
	expect.Row(t, w.do("cad agent show vera"), "fleet_agent", nil)
	w.refuses("cad agent bind mona --free", "CONFLICT agent_id")

	asked := w.do(`cad message mona vera request '{"request_type":"validate_component","component_id":"ws_part_solid_1"}'`)
	expect.Row(t, asked, "from_agent_id", "mona", "message_type", "request", "read", false)
	w.do(`cad message vera mona response '{"request_id":"` + str(asked["message_id"]) + `","status":"success"}'`)
	w.do(`cad message vera broadcast broadcast '{"announcement":"status_update"}'`)
	got := w.objects("cad messages mona")
	expect.True(t, len(got) == 2 && got[0]["message_type"] == "broadcast", "messages: %v", got)
	expect.Row(t, w.do("cad messages vera --mark-read"), "message_id", asked["message_id"], "read", true)
	got = w.objects("cad messages vera --status unread")
	expect.True(t, len(got) == 0, "unread: %v", got)
	w.text("cad messages vera", "validate_component", "yes")

	w.do("cad workspace create ws_copy --base ws_part --name 'A copy'")
	expect.Row(t, w.do("cad workspace show ws_copy"), "base_workspace_id", "ws_part", "entity_count", 2.0, "solid_count", 1.0)
	w.do("cad workspace list")
	w.text("cad workspace list", "ws_part", "ws_copy")
	if got := w.do("cad workspace entities ws_copy --kind solid"); got["entity_id"] != "ws_part_solid_1" || got["shape"] == nil {
		t.Errorf("entities: %v", got)
	}
	w.text("cad workspace entities ws_copy", "ws_part_circle_1", "circle")
	got = w.objects("cad workspace history ws_part --page 1")
	expect.True(t, len(got) == 4 && got[0]["method"] == "solid.extrude" && got[3]["total_count"] == 3.0, "history: %v", got)
	w.do("cad workspace history ws_part")
	w.text("cad workspace history ws_part", "solid.extrude", "mona")
	w.do("cad workspace conflicts ws_part")
	if got := w.do("cad workspace directory ws_part parts"); !strings.HasSuffix(str(got["directory"]), "/parts") {
		t.Errorf("directory: %v", got)
	}
	w.do(`cad op mona file.export '{"file_path":"part.stl","format":"STL"}'`)
	expect.Row(t, w.do("cad controller show"), "max_concurrent_agents", 10.0, "agent_count", 2.0)
	expect.True(t, len(w.do("cad controller show")["agents"].(map[string]any)) == 2, "the agents of the controller")
	expect.Row(t, w.do("cad controller max-concurrent 4"), "max_concurrent_agents", 4.0)
	expect.Row(t, w.do("cad agent shutdown vera"), "status", "terminated")
}

// refuses wants a line to fail with a code and a field.
func (w *walk) refuses(line, want string) {
	w.t.Helper()
	args := expect.Of(command.Split(line + " -o json"))(w.t)
	exit, _, stderr := w.run(args...)
	code, field, _ := strings.Cut(want, " ")
	expect.True(w.t, exit != command.ExitOK && strings.Contains(stderr, `"code":"`+code+`"`) && strings.Contains(stderr, `"field":"`+field+`"`),
		"%s: exit %d, want %s: %s", line, exit, want, stderr)
}

func TestMarkingMessagesReadIsAChange(t *testing.T) {
	d := newDeck(t)
	d.line("cad agent create mona --role modeler")
	d.line("cad agent create vera --role validator")
	d.line(`cad message mona vera request '{"request_type":"query_status"}'`)
	env := d.env
	env.Role = command.Viewer
	code, out, stderr := d.runIn(t.Context(), env, "cad", "messages", "vera")
	expect.True(t, code == 0 && strings.Contains(out, "request  -"), "a viewer looks: exit %d %q %q", code, out, stderr)
	code, out, stderr = d.runIn(t.Context(), env, "cad", "messages", "vera", "--mark-read")
	expect.True(t, code != 0 && out == "" && strings.Contains(stderr, "needs the rights of operator"), "a viewer marks: exit %d %q %q", code, out, stderr)
	out = d.line("cad messages vera --mark-read -o sentence")
	expect.True(t, strings.HasPrefix(out, "read message "), "%q", out)
}

func TestCADCommandsCompleteWhatThereIs(t *testing.T) {
	d := newDeck(t)
	d.line("cad agent create mona --role modeler")
	for line, want := range map[string]string{
		"cad op mo":                   "mona",
		"cad op mona solid.ex":        "solid.extrude",
		"cad agent create x --role v": "validator",
		"cad workspace show ws":       "ws_mona",
		"cad message mona broad":      "broadcast",
	} {
		expect.Is(t, strings.Join(d.complete(line), " "), want, line)
	}
}
