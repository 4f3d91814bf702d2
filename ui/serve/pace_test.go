package serve

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestAClientThatAnswersLateIsNeverFarBehind has a link of 300 ms and looks how
// much is under way when as much is written as may be.
func TestAClientThatAnswersLateIsNeverFarBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(io.Discard, func() bool { time.Sleep(300 * time.Millisecond); return true })
		frame := make([]byte, 1500)
		wrote := 0
		for range 100 { // 10 s of frames
			if !p.Full() {
				_, _ = p.Write(frame)
				wrote++
			}
			p.mu.Lock()
			under := p.sent - p.taken
			p.mu.Unlock()
			if under > ahead+uint64(len(frame)) {
				t.Fatalf("%d bytes are under way", under)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if wrote < 40 {
			t.Errorf("%d frames in 10 s", wrote)
		}
		for p.Full() {
			<-p.room
		}
		time.Sleep(time.Minute) // for who still asks
	})
}

func TestAClientThatNeverAnswersGetsEveryFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		p := newPace(io.Discard, func() bool { <-ended; return false })
		_, _ = p.Write(make([]byte, ahead))
		if !p.Full() {
			t.Error("it is not waited for")
		}
		<-p.room
		if p.Full() {
			t.Error("it is waited for after a while")
		}
		close(ended)
		time.Sleep(time.Minute)
	})
}

func TestWhatAClientSaysOfItselfIsBelievedWithinReason(t *testing.T) {
	p := newPace(io.Discard, nil)
	_, _ = p.Write(make([]byte, near))
	for _, n := range []uint64{0, near + 1, 1 << 63} {
		if p.tookTo(n); !p.Full() {
			t.Errorf("%d of %d counts", n, near)
		}
	}
	if p.tookTo(near); p.Full() {
		t.Error("what it took does not count")
	}
}
