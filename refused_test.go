package main

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/operator"
	"swarmdeck/ui/serve"
)

func TestStrangersAreToldOfInFewRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []operator.Turned
		s := &strangers{tell: func(r operator.Turned) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, r)
		}}
		for i := range 1500 { // ten a second
			s.key(fmt.Sprint("SHA256:", i))
			s.refused(serve.NoKey, fmt.Sprint("192.0.2.", i%200))
			time.Sleep(100 * time.Millisecond)
		}
		s.end()
		mu.Lock()
		defer mu.Unlock()
		if len(told) < 3 || len(told) > 5 {
			t.Fatalf("%d records in 150 s", len(told))
		}
		n := 0
		for _, r := range told {
			sum := r.Others
			for _, of := range r.From {
				sum += of
			}
			if n += r.Reasons["no_key"]; sum != r.Reasons["no_key"] || len(r.From) > maxNamed || len(r.Keys) > maxNamed {
				t.Errorf("%+v", r)
			}
		}
		if n != 1500 || told[0].Until.Sub(told[0].Since) > 2*time.Second {
			t.Errorf("%d of 1500 counted; the first %+v", n, told[0])
		}
	})
}
