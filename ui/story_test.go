package ui

import (
	"testing"
	"time"
)

func TestAStoryIsToldSinceItWasLookedAt(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("1", ".", "t")
	r.has("since 8h ago") // nobody looked yet
	r.keys("esc")
	r.wait(25 * time.Minute)
	r.keys(".", "t")
	r.has("since 24h ago") // as it was left
	r.keys("t", "t", "t")
	r.has("since you looked, 25m ago")
}

func TestAProjectNarrowsListsOfWhatItsAgentsDid(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("2", "/")
	r.typeText("project:other")
	r.keys("enter")
	r.has("nothing passes the filter")
	r.keys("/")
	r.typeText("project:quick")
	r.keys("enter")
	r.has("tasks 2/10")
	r.keys("3", "/")
	r.typeText("project:quick")
	r.keys("enter")
	r.lacks("nothing passes the filter")
	r.keys("/")
	r.typeText("project:other")
	r.keys("enter")
	r.has("nothing passes the filter")
}
