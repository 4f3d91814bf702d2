package command_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/command"
)

// TestALineEndsWhenTheDatabaseDoesNotAnswer: within ten seconds, with the database and the
// cause in its first words, whatever holds the line up.
func TestALineEndsWhenTheDatabaseDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var said bytes.Buffer
		stand := make(chan struct{})
		env := &command.Env{
			Stdout: &said, Stderr: &said,
			Open: func(context.Context, command.Need) (*engine.Engine, error) {
				<-stand
				return nil, errors.New("too late")
			},
			Stuck: func() (time.Time, error) {
				return began, &store.DatabaseError{Name: "postgres://db1:5432/swarm", Err: errors.New("no answer for 6s")}
			},
		}
		code := command.Run(t.Context(), env, []string{"task", "list"})
		took := time.Since(began)
		expect.True(t, code == command.ExitStore && took < 10*time.Second, "exit %d after %s", code, took)
		expect.Is(t, said.String(), "swarmdeck: database postgres://db1:5432/swarm: no answer for 6s\n")
		close(stand)
	})
}
