package skill

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

var (
	namePattern    = core.Pattern(`^[A-Za-z0-9-]{3,50}$`)
	versionPattern = core.Pattern(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)
)

// What is allowed, as messages say it.
const (
	nameAllowed    = "3-50 of a-z A-Z 0-9 -"
	versionAllowed = "X.Y.Z, three numbers of at most 9 digits without leading zeros"
	refAllowed     = "a skill's name or name@X.Y.Z"
)

// version is a semantic version X.Y.Z (seed 3); the zero value is none.
type version struct{ major, minor, patch uint32 }

func parseVersion(s string) (version, bool) {
	m := versionPattern().FindStringSubmatch(s)
	if m == nil {
		return version{}, false
	}
	var n [3]uint32
	for i, digits := range m[1:] {
		v, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			return version{}, false
		}
		n[i] = uint32(v)
	}
	return version{n[0], n[1], n[2]}, true
}

func (v version) compare(o version) int {
	return cmp.Or(cmp.Compare(v.major, o.major), cmp.Compare(v.minor, o.minor), cmp.Compare(v.patch, o.patch))
}

// refKey sorts the versions of a skill, name@version, as versions do.
func refKey(ref string) record.Key {
	name, ver, _ := strings.Cut(ref, "@")
	v, ok := parseVersion(ver)
	if !ok {
		return nil
	}
	return record.Text(name).Seq(uint64(v.major)).Seq(uint64(v.minor)).Seq(uint64(v.patch))
}

// refOf is what refKey was given.
func refOf(key record.Parts) string {
	name := key.Text()
	return fmt.Sprintf("%s@%d.%d.%d", name, key.Seq(), key.Seq(), key.Seq())
}

// SplitRef reads "name" or "name@version", the latter "" when not given.
func SplitRef(ref string) (name, ver string, err error) {
	name, ver, exact := strings.Cut(ref, "@")
	if !namePattern().MatchString(name) {
		return "", "", core.Invalid("skill", ref, refAllowed+"; a name is "+nameAllowed)
	}
	if _, ok := parseVersion(ver); exact && !ok {
		return "", "", core.Invalid("skill", ref, refAllowed+"; a version is "+versionAllowed)
	}
	return name, ver, nil
}
