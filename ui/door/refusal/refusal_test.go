package refusal

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/expect"
	"swarmdeck/ui/serve"
)

func TestStrangersAreToldOfInFewRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []operator.Rejected
		s := &Strangers{Tell: func(r operator.Rejected) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, r)
		}}
		for i := range 1500 { // ten a second
			s.Key(fmt.Sprint("SHA256:", i))
			s.Refused(serve.NoKey, fmt.Sprint("192.0.2.", i%200))
			time.Sleep(100 * time.Millisecond)
		}
		s.End()
		mu.Lock()
		defer mu.Unlock()
		expect.Must(t, len(told) >= 3 && len(told) <= 5, "%d records in 150 s", len(told))
		n := 0
		for _, r := range told {
			sum := r.Others
			for _, of := range r.From {
				sum += of
			}
			n += r.Reasons["no_key"]
			expect.True(t, sum == r.Reasons["no_key"] && len(r.From) <= maxNamed && len(r.Keys) <= maxNamed, "%+v", r)
		}
		expect.True(t, n == 1500 && told[0].Until.Sub(told[0].Since) <= 2*time.Second, "%d of 1500 counted; the first %+v", n, told[0])
	})
}

// TestRefusalsOfAnOperatorAreToldOfInFewRecords has one be refused a thousand
// times for one reason, another for ever new ones, and a third once.
func TestRefusalsOfAnOperatorAreToldOfInFewRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		first, again := map[string]int{}, map[string][]operator.Again{}
		s := &Operators{
			Tell: func(by core.Caller, _ error) {
				mu.Lock()
				defer mu.Unlock()
				first[by.Name]++
			},
			TellAgain: func(by core.Caller, a operator.Again) {
				mu.Lock()
				defer mu.Unlock()
				again[by.Name] = append(again[by.Name], a)
			},
		}
		by := func(name string) core.Caller { return core.Caller{Tenant: "t_acme", Name: name} }
		s.Refused(by("carol"), core.Errorf(core.Denied, "not hers"))
		expect.Is(t, first["carol"], 1, "the first is not told at once")
		for i := range 1500 { // ten a second
			s.Refused(by("bob"), core.Errorf(core.Denied, "serve: needs the rights of admin"))
			s.Refused(by("mallory"), core.Errorf(core.Denied, "%s %d", strings.Repeat("x", 150), i))
			time.Sleep(100 * time.Millisecond)
		}
		s.End()
		s.Refused(by("dave"), core.Errorf(core.Denied, "late"))
		mu.Lock()
		defer mu.Unlock()
		count := func(name string) (n int) {
			for _, a := range again[name] {
				n += a.Others
				for reason, of := range a.Reasons {
					n += of
					expect.True(t, len(reason) <= maxReason+len("…"), "a reason of %d bytes", len(reason))
				}
				expect.True(t, len(a.Reasons) <= maxNamed && a.Until.Sub(a.Since) <= thenTold, "%s: %+v", name, a)
			}
			return first[name] + n
		}
		if len(again["bob"]) != 3 || first["bob"] != 1 || count("bob") != 1500 {
			t.Errorf("bob: %d at once, %d later, %d of 1500 counted", first["bob"], len(again["bob"]), count("bob"))
		}
		if told := first["mallory"] + len(again["mallory"]); told > 3*(maxNamed+1) || count("mallory") != 1500 {
			t.Errorf("mallory: %d records, %d of 1500 counted", told, count("mallory"))
		}
		expect.Is(t, len(again["carol"]), 0, "carol", again["carol"])
		expect.Is(t, first["dave"], 1, "what comes after the end is lost")
	})
}
