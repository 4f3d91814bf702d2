//go:build linux

package app

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/expect"
)

// tries has, in a bubble, a tenant fail whenever it may be taken within a span, and tells
// when that was.
func tries(r *retakes, tenant string, span time.Duration) (at []time.Duration) {
	for began := time.Now(); time.Since(began) < span; time.Sleep(shareEvery) {
		if !r.rests(tenant) {
			at = append(at, time.Since(began))
			r.failed(tenant)
		}
	}
	return at
}

func TestATenantWhoseEngineFailsIsRetakenEverMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r retakes
		at := tries(&r, "t_bad", 5*time.Minute)
		pause := minRetake
		for i := 1; i < len(at); i++ {
			got := at[i] - at[i-1]
			expect.True(t, got >= pause && got <= pause+pause/4+shareEvery, "try %d came after %s, want %s and a bit", i, got, pause)
			pause = min(2*pause, maxRetake)
		}
		expect.True(t, len(at) >= 12 && len(at) <= 18, "%d tries in 5 minutes: %v", len(at), at)
		expect.True(t, r.rests("t_bad") && !r.rests("t_good"), "the wrong tenant rests")
	})
}

func TestATenantThatWorkedForAWhileIsRetakenAtOnceAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r retakes
		tries(&r, "t_x", time.Minute)
		r.opened("t_x")
		expect.True(t, !r.rests("t_x"), "what works rests")
		time.Sleep(time.Second) // it fails as soon as it runs: that is no success
		next := time.Until(r.failed("t_x"))
		expect.True(t, next >= maxRetake, "what ran for a second is tried again after %s", next)
		r.opened("t_x")
		time.Sleep(maxRetake)
		next = time.Until(r.failed("t_x"))
		expect.True(t, next <= 2*minRetake, "what ran for long is tried again after %s", next)
		r.failed("t_y")
		r.opened("t_x")
		expect.Same(t, r.forget(func(tenant string) bool { return tenant == "t_y" }), []string{"t_y"}, "is over, want what another engine has")
		time.Sleep(maxRetake)
		over := r.forget(func(string) bool { return false })
		expect.True(t, slices.Equal(over, []string{"t_x"}) && len(r.all) == 0, "%v is over, want what has worked for long", over)
	})
}
