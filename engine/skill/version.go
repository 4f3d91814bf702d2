package skill

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
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

// key sorts as the version does.
func (v version) key() []byte {
	b := make([]byte, 0, 12)
	for _, n := range []uint32{v.major, v.minor, v.patch} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

// versionOf writes the version that a key stands for.
func versionOf(key string) string {
	if len(key) != 12 {
		return ""
	}
	b := []byte(key)
	return fmt.Sprintf("%d.%d.%d", binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]))
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
