package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsLeftToDoHasTimeFromTheEndOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		last, stop := Outlast(ctx, time.Second)
		defer stop()
		time.Sleep(time.Hour)
		if last.Err() != nil {
			t.Error("it ended before its context")
		}
		end()
		ended := time.Now()
		<-last.Done()
		if took := time.Since(ended); took != time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}
