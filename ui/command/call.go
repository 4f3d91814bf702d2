package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/store"
)

// DefaultTenant is made for the first command that needs a tenant.
const DefaultTenant = "t_default"

// call is one command being carried out.
type call struct {
	ctx   context.Context
	env   *Env
	cmd   *cobra.Command
	flags *pflag.FlagSet
	g     Globals

	reads  bool        // the command changes nothing
	looks  bool        // it has the data file to itself all the same
	least  Role        // that it takes
	need   Need        // of the engine that it opens, but for what the line says
	waits  atomic.Bool // it needs work to be scheduled, for who looks at the line from beside
	opened Need

	role Role           // of whom --as names, once their key has proved it; "" is the door's
	eng  *engine.Engine // open since scope or engine
	by   core.Caller    // who asks, in which tenant; settled by scope
}

func (t *tree) begin(cmd *cobra.Command, s spec) (*call, error) {
	env, g := t.env, t.g
	if g.As == "" {
		g.As, g.Key = env.As, cmp.Or(g.Key, env.Key)
	}
	if g.Data != "" && env.Caller.Door != core.DoorCLI {
		return nil, core.Errorf(core.InvalidInput, "--data: this door already has its data file").With("field", "data")
	}
	if g.As != "" && env.Caller.Door != core.DoorCLI && env.Caller.Door != core.DoorScript {
		return nil, core.Errorf(core.Denied, "--as: the operator is known by this door and can't be changed").With("field", "as")
	}
	if f := cmd.Flag("theme"); f != nil && f.Changed {
		if _, err := LoadTheme(env.getenv, g.Theme); err != nil {
			return nil, err
		}
	}
	if err := env.point(g.Data); err != nil {
		return nil, err
	}
	g.Data = env.dataPath(g.Data)
	g.ReadOnly = g.ReadOnly || env.ReadOnly
	return &call{ctx: t.ctx, env: env, cmd: cmd, flags: cmd.Flags(), g: g, reads: s.effect == Reads, looks: s.looks, least: s.role}, nil
}

// do carries the command out: it is permitted, its line is checked, its tenant
// is settled, and then it runs.
func (c *call) do(s spec, args []string) error {
	err := c.allowed(s, args)
	told := err != nil
	if err == nil && s.check != nil {
		err = s.check(c, args)
		told = errors.Is(err, core.Kind(core.Denied))
	}
	if told && c.env.Refused != nil {
		by, _ := c.operator()
		c.env.Refused(by, err)
	}
	if err != nil {
		return err
	}
	carry := func() error {
		if !s.ownScope {
			if err := c.scope(); err != nil {
				return err
			}
		}
		err := s.run(c, args)
		if errors.Is(err, core.ErrForeign) && c.reads && c.opened.ReadOnly && !c.g.ReadOnly {
			// Who only reads can't audit that another tenant's record was named,
			// so name it once more where it can be written down.
			if _, openErr := c.open(Need{Data: c.g.Data, Tenant: c.opened.Tenant}); openErr != nil {
				return errors.Join(err, openErr)
			}
			err = s.run(c, args)
		}
		return err
	}
	if s.stays {
		return carry()
	}
	return heed(c, carry)
}

// allowed holds the line against the door: its role, and where it comes from.
func (c *call) allowed(s spec, args []string) error {
	if err := c.mayAgent(s); err != nil {
		return err
	}
	if err := c.permit(commandPath(c.cmd), s); err != nil {
		return err
	}
	if err := c.named(s, args); err != nil {
		return err
	}
	if !c.env.Remote {
		return nil
	}
	return c.refuseRemote(s, args)
}

// refuseRemote refuses what a session from another machine can't do: leave its
// tenant, keep the whole data file, name a file of this machine.
func (c *call) refuseRemote(s spec, args []string) error {
	path := commandPath(c.cmd)
	if err := c.within(); err != nil {
		return err
	}
	if s.ownScope && (s.role == Admin || path == "up" || strings.HasPrefix(path, "store ")) {
		return core.Errorf(core.Denied, "%s: only on the machine of the data file", path).With("field", "command")
	}
	return c.eachFile(s, args, func(f fileArg) error {
		if c.elsewhere(f.source, f.value) {
			return onlyThere(f.what, f.field)
		}
		return nil
	})
}

// elsewhere reports whether a value from another machine names a file of this
// one. A text is read by file, which knows what a script brought along.
func (c *call) elsewhere(source, value string) bool {
	if value == "-" {
		return false
	}
	_, brought := c.env.Files[value]
	return source == "file" || source == "dir" || source == sourceText && !brought
}

// within refuses to leave the tenant that a session from another machine is in.
func (c *call) within() error {
	if !c.env.Remote || c.g.Tenant == "" || c.g.Tenant == c.env.Caller.Tenant {
		return nil
	}
	return core.Errorf(core.Denied, "--tenant: your key opens %s here, not %s", c.env.Caller.Tenant, core.Clip(c.g.Tenant)).With("field", "tenant")
}

// onlyThere refuses a file of this machine named from another.
func onlyThere(what, field string) error {
	return core.Errorf(core.Denied, "%s: files can't be named from another machine; use - and send it on stdin, or bring it along in a script", what).With("field", field)
}

// permit holds the command against --read-only and the door's role.
func (c *call) permit(path string, s spec) error {
	if !c.env.Role.Includes(s.role) {
		return core.Errorf(core.Denied, "%s: needs the rights of %s, you have those of %s", path, s.role, c.env.Role).With("field", "role")
	}
	if c.g.ReadOnly && s.effect != Reads {
		return core.Errorf(core.Denied, "%s: refused because %s", path, c.onlyReads()).With("field", "read-only")
	}
	return nil
}

// onlyReads says why this session changes nothing.
func (c *call) onlyReads() string {
	if c.env.ReadOnly && c.env.Role == Viewer {
		return "you are a " + string(Viewer) + ", who only reads"
	}
	return "of --read-only"
}

// activate asks for an engine that does work while the command runs. Who only
// reads may follow what the engine does that they came to from elsewhere.
func (c *call) activate() error {
	if c.need.Watch = c.watches(); c.need.Watch || !c.idle() {
		c.need.Active = !c.idle()
		c.waits.Store(c.need.Active)
		return nil
	}
	return core.Errorf(core.Denied, "%s: nothing runs with --read-only", commandPath(c.cmd)).With("field", "read-only")
}

// watches says that a command can go on with what comes though nothing is worked on in
// this process: engines elsewhere work on a database.
func (c *call) watches() bool { return c.reads && !c.looks && c.onFile() && DatabaseIn(c.g.Data) != "" }

// idle says that nothing is worked on in this process while the command runs.
func (c *call) idle() bool { return c.g.ReadOnly && !c.env.Attached }

// engine opens the engine on first use.
func (c *call) engine() (*engine.Engine, error) {
	need := c.need
	need.Data, need.Tenant, need.ReadOnly = c.g.Data, c.wanted(), c.g.ReadOnly
	if c.reads && !c.looks && !need.Active && !need.ReadOnly {
		// Readers share the file, so open it for reading when it is there. A new
		// one is empty, which is no answer where proof is asked for.
		_, err := os.Stat(c.g.Data)
		need.ReadOnly = err == nil || strings.HasPrefix(commandPath(c.cmd), "audit ")
	}
	eng, err := c.open(need)
	if need.Watch && need.Active && (errors.Is(err, store.ErrStandby) || errors.Is(err, store.ErrLocked)) {
		need.ReadOnly, need.Active = true, false
		return c.open(need)
	}
	return eng, err
}

func (c *call) open(need Need) (*engine.Engine, error) {
	if c.eng != nil && need.Tenant == c.opened.Tenant && (need == c.opened || !c.opened.ReadOnly && !need.Active || c.opened.Active) {
		return c.eng, nil
	}
	if c.env.Open == nil {
		return nil, core.Errorf(core.Unavailable, "no engine here")
	}
	eng, err := c.env.Open(c.ctx, need)
	if errors.As(err, new(store.LockedError)) {
		return nil, fmt.Errorf("%w; leave the cockpit or end the command that has it, or name another file with --data", err)
	}
	if err != nil {
		return nil, err
	}
	c.eng, c.opened = eng, need
	return eng, nil
}

// opens opens the engine and settles who asks, with their tenant when it says so.
func (c *call) opens(tenant bool) error {
	if tenant {
		return c.scope()
	}
	_, err := c.engine()
	if err == nil {
		c.by, err = c.operator()
	}
	if err == nil {
		err = c.anywhere(c.by)
	}
	return err
}

// scope opens the engine and settles the tenant and the operator.
func (c *call) scope() error {
	if _, err := c.engine(); err != nil {
		return err
	}
	by, err := c.operator()
	if err != nil {
		return err
	}
	tenant, err := c.tenant(by)
	if err != nil {
		return err
	}
	by.Tenant = tenant
	if c.by, err = c.identify(by); err != nil {
		return err
	}
	if c.role != "" && !c.role.Includes(c.least) {
		return core.Errorf(core.Denied, "%s: needs the rights of %s, %s has those of %s", commandPath(c.cmd), c.least, c.by.Name, c.role).With("field", "role")
	}
	return nil
}

// wanted is the tenant that the flag, the door or the environment names.
func (c *call) wanted() string {
	return cmp.Or(c.g.Tenant, c.env.Caller.Tenant, c.env.getenv("SWARMDECK_TENANT"))
}

// tenant picks the tenant: flag, door, environment, the only one there is. On
// a data file without any it makes DefaultTenant.
func (c *call) tenant(by core.Caller) (string, error) {
	// Asked here too, because an argument or a completion may name one.
	if err := c.within(); err != nil {
		return "", err
	}
	all, err := c.eng.Swarm.Tenants(c.ctx)
	if err != nil {
		return "", fmt.Errorf("list tenants: %w", err)
	}
	want := c.wanted()
	if want == "" && len(all) > 1 {
		want = c.usual(by, all)
	}
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.TenantID
		if t.TenantID == want {
			return want, nil
		}
	}
	if err := c.elsewhereTenant(want, len(all)); err != nil {
		return "", err
	}
	listed := strings.Join(names, ", ")
	switch {
	case want != "" && len(all) == 0:
		return "", core.Errorf(core.NotFound, "tenant %q: not found; there is none yet, make it with: tenant create %s", core.Clip(want), core.Clip(want)).With("field", "tenant").With("value", core.Clip(want))
	case want != "":
		return "", core.Errorf(core.NotFound, "tenant %q: not found; there are: %s", core.Clip(want), listed).With("field", "tenant").With("value", core.Clip(want)).With("allowed", names)
	case len(all) == 1:
		return names[0], nil
	case len(all) > 1:
		return "", core.Errorf(core.InvalidInput, "which tenant? name one with --tenant, or for good with tenant use: %s", listed).With("field", "tenant").With("allowed", names)
	case c.g.ReadOnly:
		return "", core.Errorf(core.NotFound, "there is no tenant yet, and --read-only makes none").With("field", "tenant")
	}
	if _, err = c.open(Need{Data: c.g.Data, Tenant: c.opened.Tenant, Active: c.need.Active}); err != nil {
		return "", err
	}
	by.Tenant = DefaultTenant
	if by.Kind == core.Operator && c.as() { // nobody is proved where nobody is known
		by.Name = userName(by.Proof)
	}
	made, err := c.eng.Swarm.CreateTenant(c.ctx, by, DefaultTenant)
	switch {
	case errors.Is(err, core.Kind(core.Conflict)): // another first command made it meanwhile
		made.TenantID = DefaultTenant
	case err != nil:
		return "", err
	}
	need := c.opened
	need.Tenant = made.TenantID // which an engine of its own may have
	_, err = c.open(need)
	return made.TenantID, err
}

// usual is which of several tenants the caller works in: the one of tenant use, or else
// the one that the first command made; "" is neither.
func (c *call) usual(by core.Caller, all []swarm.Tenant) string {
	for _, id := range []string{c.currents()[cmp.Or(by.Proof, by.Name)], DefaultTenant} {
		if slices.ContainsFunc(all, func(t swarm.Tenant) bool { return t.TenantID == id }) {
			return id
		}
	}
	return ""
}

// elsewhereTenant says where a tenant is that this store knows by its name alone. On a
// store that has none but such, no other is made unasked.
func (c *call) elsewhereTenant(want string, others int) error {
	st, knows := c.eng.Store().(interface {
		Away(ctx context.Context) ([]*store.AwayError, error)
	})
	if !knows || want == "" && others > 0 {
		return nil
	}
	all, err := st.Away(c.ctx)
	if err != nil {
		return err
	}
	for _, away := range all {
		if want == "" || want == away.Tenant {
			return away
		}
	}
	return nil
}

func (c *call) now() time.Time { return c.env.clock().Now() }
