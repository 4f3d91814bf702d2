package op

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/host"
	"swarmdeck/engine/reach"
)

func hosts() []*Op {
	return []*Op{
		hostAdd(),
		picked(Op{Name: "host list", Short: "List the hosts, how their links are and who runs there"},
			func(c *Call) tenantList[host.Status] { return c.Hosts.List }, func(_ *Call, h host.Status) core.Traits {
				text := h.Name + " " + h.Way() + " " + h.Reason
				for k, v := range h.Labels {
					text += " " + k + "=" + v
				}
				return core.Traits{At: h.CreatedAt, Status: h.State, Text: text}
			}),
		show(Op{Name: "host show", Short: "Show a host in full"}, arg("NAME", "host"),
			byTenant(func(c *Call) tenantRead[string, host.Status] { return c.Hosts.Get })),
		hostDrain(),
		hostRemove(),
	}
}

func hostAdd() *Op {
	var h host.Host
	var line Words
	var labels []string
	var lease time.Duration
	return define(Op{
		Request: &h,
		Name:    "host add", Short: "Have agents run on another machine", Role: Admin, Undo: "host remove", Done: "added",
		Long: "Have agents run on another machine, which ssh reaches without a question: by a key that ssh or its agent has, and a host\n" +
			"key that is known. With --command another program reaches it, which has a shell there run a script: its words are the\n" +
			"command's and then sh -c SCRIPT, or in the place of the word {} all of that as one. The program copies itself to\n" +
			"~/.cache/swarmdeck there, once for each version, and keeps the agents' processes behind the same wall as here, whose\n" +
			"way out leads over the link. When the link is lost they go on for --lease, and end then; what they say meanwhile is kept\n" +
			"there. The same name again changes labels, slots and lease.",
		Example: "host add build ssh://ci@build.example:2222 --label arch=arm64 --slots 4\nhost add box --command 'docker exec -i box'",
		Params: []*Param{
			place(&h.Name, "NAME", ""), maybe(&h.Address, "ADDRESS", ""),
			flag(&line, "command", "`COMMAND` that reaches it, split like a shell does").names(reach.Command),
			{Name: "label", About: "`K=V` to know it by; may be repeated", Into: &labels, Whole: true, Names: reach.Inside},
			flag(&h.Slots, "slots", "how many it takes (default 16): `N`"),
			flag(&lease, "lease", "its agents go on without a link for this `DURATION` (default 1m)").fills(&h.LeaseS),
		},
		Check: func(*Call) (err error) {
			h.Command = line
			h.LeaseS = int(lease / time.Second)
			if h.Labels, err = Pairs("label", labels); err != nil {
				return err
			}
			return h.Check()
		},
	}, func(ctx context.Context, c *Call) (host.Status, error) {
		made, _, err := c.Hosts.Add(ctx, c.By, h)
		if err != nil {
			return host.Status{}, err
		}
		return c.Hosts.Shown(made), nil
	})
}

func hostDrain() *Op {
	var name string
	var undo bool
	return define(Op{
		Name: "host drain", Short: "Have a host take no more agents", Done: "draining",
		Long: "Have a host take no more agents, and say who is still there. They stay and work; delete them to empty it, and then host\n" +
			"remove.",
		Params: []*Param{place(&name, "NAME", "host"), flag(&undo, "undo", "have it take agents again")},
	}, func(ctx context.Context, c *Call) (host.Status, error) {
		h, err := c.Hosts.Drain(ctx, c.By, name, !undo)
		if err != nil {
			return host.Status{}, err
		}
		st := c.Hosts.Shown(h)
		c.Note(name + ": " + st.Remains())
		return st, nil
	})
}

func hostRemove() *Op {
	var name string
	var force bool
	return define(Op{
		Name: "host remove", Short: "End what runs on a host, remove what was put there and forget it", Effect: Destroys, Role: Admin, Confirm: ConfirmAsk, Done: "removed",
		Long: "End what runs on a host, remove what was put there and forget it. It is refused while agents have their place there. One\n" +
			"that can't be reached is removed as soon as it can be; --force forgets it at once, and leaves what lies there in\n" +
			"~/.cache/swarmdeck. What runs there has ended by then, or does when the lease is over.",
		Params: []*Param{place(&name, "NAME", "host"), flag(&force, "force", "forget it although it can't be reached")},
		Check: func(c *Call) error {
			if force {
				return nil
			}
			return c.Activate()
		},
	}, func(ctx context.Context, c *Call) (Told[Done], error) {
		err := c.Hosts.Remove(ctx, c.By, name, force)
		word := fmt.Sprintf("nothing is left on %s", name)
		if force {
			word = fmt.Sprintf("%s is forgotten", name)
		}
		return told(Done{name, "removed"}, word), err
	})
}
