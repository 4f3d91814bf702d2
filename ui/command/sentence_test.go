package command_test

import (
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestWhatAChangeCameToIsASentence(t *testing.T) {
	d := newDeck(t)
	for _, c := range []struct{ line, want string }{
		{"tenant create t_test -o sentence", "created tenant t_test"},
		{"session create --name day -o sentence", "created session se_"},
		{`task dispatch --kind exec.run --input '{"argv":["true"]}' -o sentence`, "dispatched task tk_"},
		{"budget set tenant --tasks 5 -o sentence", "set budget tenant"},
		{"egress allow example.com:443 -o sentence", "allowed connections to example.com:443"},
		{"egress remove example.com:443 -o sentence", "removed the rule about example.com:443"},
		{"estop on --reason x -o sentence", "emergency stop: everything is told to freeze"},
		{"estop off --reason x -o sentence", "thawed: work goes on"},
		{"bus publish nav.complete '{}' -o sentence", "published message "},
		{"cad agent create ann --role modeler -o sentence", "created CAD agent ann"},
		{"cad decompose 'shaft 20x50 mm' -o sentence", "workflow wf_"},
		{"session list -o sentence", "SESSION"},
	} {
		out := d.line(c.line)
		expect.True(t, (c.want == "SESSION" || strings.Count(out, "\n") == 1) && strings.HasPrefix(out, c.want), "%s: %q, want %q", c.line, out, c.want)
	}
}
