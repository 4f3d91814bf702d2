package swarm_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/enginetest"
	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// BenchmarkTaskLifeBesideRiver prints lives a second on a PostgreSQL server that syncs,
// beside River's on the same server: the program that SWARMDECK_RIVER names. The two
// take turns, and the ratio is that of their times together. A life's processor time
// is that of this process and that of the server's; River's own is its whole process's.
func BenchmarkTaskLifeBesideRiver(b *testing.B) {
	river := os.Getenv("SWARMDECK_RIVER")
	if river == "" {
		b.Skip("SWARMDECK_RIVER names no program: make bench-river")
	}
	server := postgrestest.StartDurable(b)
	b.Setenv(enginetest.DataEnv, server.Database(b, "ours"))
	theirs := server.Database(b, "river")
	const rounds = 3
	for _, producers := range []int{64, 256} {
		for _, feed := range []bool{false, true} {
			name := "each-waits"
			if feed {
				name = "fed"
			}
			b.Run(fmt.Sprintf("producers=%d/%s", producers, name), func(b *testing.B) {
				n := max(b.N, 24_000) / rounds
				r := benchRig(b, false)
				var our, their cost
				for range rounds {
					our.measure(b, server, func() float64 {
						if feed {
							return r.feed(n, producers)
						}
						rate, _ := r.live(n, producers)
						return rate
					})
					their.measure(b, server, func() float64 {
						out, err := exec.CommandContext(b.Context(), river, "-dsn", theirs, "-n", fmt.Sprint(n), "-producers", fmt.Sprint(producers), fmt.Sprint("-feed=", feed)).Output()
						expect.No(b, err)
						rate := expect.Of(strconv.ParseFloat(strings.TrimSpace(string(out)), 64))(b)
						return rate
					})
				}
				lives := float64(rounds * n)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(rounds/our.perLife, "lives/s")
				b.ReportMetric(rounds/their.perLife, "river-lives/s")
				b.ReportMetric(their.perLife/our.perLife, "x-river")
				b.ReportMetric(our.client.Seconds()*1e6/lives, "go-us/life")
				b.ReportMetric(our.server.Seconds()*1e6/lives, "server-us/life")
				b.ReportMetric(their.client.Seconds()*1e6/lives, "river-go-us/life")
				b.ReportMetric(their.server.Seconds()*1e6/lives, "river-server-us/life")
			})
		}
	}
}

// cost is what rounds have taken: seconds of a life, one sum over the rounds, and
// processor time.
type cost struct {
	perLife        float64
	client, server time.Duration
}

func (c *cost) measure(b *testing.B, server *postgrestest.Cluster, live func() float64) {
	client, there := processorTime(b), server.ProcessorTime(b)
	c.perLife += 1 / live()
	c.client += processorTime(b) - client
	c.server += server.ProcessorTime(b) - there
}

// processorTime is what this process and its children that have ended took.
func processorTime(b *testing.B) (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		expect.No(b, syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
