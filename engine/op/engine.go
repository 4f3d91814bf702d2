package op

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
)

func engines() []*Op {
	return []*Op{
		list(Op{
			Name: "engine list", Short: "List the engines that work on the data, and which tenants they have", Alone: true, Statuses: cluster.States(),
			Long: "List the engines that work on the data, and which tenants they have. Those of a database are up when they answer, late when\n" +
				"they have not for two thirds of their lease, and gone once it is over: others take their tenants then. One that is stopped\n" +
				"is draining while it hands its tenants over. A data file has one engine while a cockpit or serve\n" +
				"runs. From another machine only the own tenant is named, the others are counted.",
		}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[cluster.Engine], error) {
			all, err := engineLook(ctx, c)
			if err == nil && len(all.Free) > 0 {
				c.Note("no engine has " + freed(all.Free))
			}
			return core.Pick(all.Engines, err, f, func(e cluster.Engine) core.Traits {
				return core.Traits{At: e.Since, Status: string(e.State), Text: e.Name + " " + e.Address + " " + e.Version + " " + strings.Join(e.Tenants, " ")}
			})
		}),
		engineShow(),
	}
}

// freed names tenants that no engine has, the first few of them.
func freed(tenants []string) string {
	const most = 20
	text := strings.Join(tenants[:min(len(tenants), most)], ", ")
	if more := len(tenants) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func engineShow() *Op {
	return show(Op{Name: "engine show", Short: "Show an engine in full", Alone: true}, arg("NAME", "engine"),
		func(ctx context.Context, c *Call, name string) (cluster.Engine, error) {
			all, err := engineLook(ctx, c)
			if err != nil {
				return cluster.Engine{}, err
			}
			is := func(e cluster.Engine) bool { return e.Name == name }
			if i := slices.IndexFunc(all.Engines, is); i >= 0 {
				return all.Engines[i], nil
			}
			return cluster.Engine{}, core.Missing("engine", name)
		})
}

// engineLook tells of the engines what the caller may know.
func engineLook(ctx context.Context, c *Call) (cluster.Cluster, error) {
	if err := c.Open(false); err != nil {
		return cluster.Cluster{}, err
	}
	all, err := c.Cluster.Look(ctx)
	if c.Remote {
		all = all.Of(c.By.Tenant)
	}
	return all, err
}
