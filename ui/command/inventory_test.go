package command

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/expect"
)

var update = flag.Bool("update", false, "write the expected files anew")

// TestTheInventoryOfCommands: a command or a flag that is lost, renamed, or asks
// for another role, effect or confirmation than before is a change that is meant.
func TestTheInventoryOfCommands(t *testing.T) {
	var out bytes.Buffer
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if a := cmd.Annotations; a[noteEffect] != "" {
			fmt.Fprintf(&out, "%s: %s, %s, %s; %s\n", cmd.UseLine(), a[noteEffect], a[noteRole], a[noteConfirm], a[noteArgs])
			cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				if f.Name != "help" {
					fmt.Fprintf(&out, "  --%s %s = %q%s\n", f.Name, f.Value.Type(), f.DefValue, f.Annotations[noteSource])
				}
			})
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newTree(&Env{}, t.Context()).root)
	path := filepath.Join("testdata", "commands.txt")
	if *update {
		expect.No(t, os.WriteFile(path, out.Bytes(), 0o600))
	}
	want := expect.Of(os.ReadFile(path))(t)
	was, is := bytes.Split(want, []byte("\n")), bytes.Split(out.Bytes(), []byte("\n"))
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(was):
			t.Fatalf("line %d is new: %s; -update writes the list anew", i+1, is[i])
		case i >= len(is) || !bytes.Equal(was[i], is[i]):
			t.Fatalf("line %d was %s; -update writes the list anew", i+1, was[i])
		}
	}
}
