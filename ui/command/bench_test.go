package command_test

import (
	"context"
	"io"
	"testing"

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
