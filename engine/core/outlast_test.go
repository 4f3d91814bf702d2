package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/expect"
)

func TestWhatIsLeftToDoHasTimeFromTheEndOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		last, stop := Outlast(ctx, time.Second)
		defer stop()
		time.Sleep(time.Hour)
		expect.Is(t, last.Err(), nil, "it ended before its context")
		end()
		ended := time.Now()
		<-last.Done()
		expect.Is(t, time.Since(ended), time.Second, "it ended after")
	})
}
