package command_test

import (
	"context"
	"io"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

func BenchmarkRunVersion(b *testing.B) {
	env := command.Env{Stdout: io.Discard, Stderr: io.Discard}
	b.ReportAllocs()
	for b.Loop() {
		command.Run(context.Background(), &env, []string{"version"})
	}
}

func BenchmarkCompleteAWord(b *testing.B) {
	env := command.Env{}
	b.ReportAllocs()
	for b.Loop() {
		command.Complete(context.Background(), &env, "task dis")
	}
}

func BenchmarkLoadKeys(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		expect.Of(command.LoadKeys(func(string) string { return "" }))(b)
	}
}

// A tree costs a fifth of a millisecond, and the keymap names some forty lines:
// one tree for each would be most of the time to the first frame.
func TestReadingTheKeysTakesFewTrees(t *testing.T) {
	none := func(string) string { return "" }
	tree := testing.AllocsPerRun(5, func() { command.Commands() })
	keys := testing.AllocsPerRun(5, func() {
		expect.Of(command.LoadKeys(none))(t)
	})
	expect.True(t, keys <= 5*tree, "reading the keys allocates %.0f times, a tree of commands %.0f", keys, tree)
}
