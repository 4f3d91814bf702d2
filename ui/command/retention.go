package command

import (
	"strconv"
	"time"

	"swarmdeck/engine/op"
	"swarmdeck/engine/retention"
)

func retentionColumns(c *call) []column[retention.Policy] {
	type P = retention.Policy
	return []column[P]{
		{title: "KIND", text: func(p P) string { return p.Kind }},
		{title: "AGE", right: true, text: func(p P) string {
			if p.AgeS == 0 {
				return ""
			}
			return (time.Duration(p.AgeS) * time.Second).String()
		}},
		{title: "COUNT", right: true, text: func(p P) string {
			if p.Count == 0 {
				return ""
			}
			return strconv.FormatInt(p.Count, 10)
		}},
		{title: "SIZE", right: true, text: func(p P) string {
			if p.Bytes == 0 {
				return ""
			}
			return op.Size(p.Bytes)
		}},
		{title: "EXPORT", most: 60, text: func(p P) string { return p.Export }},
		{title: "SET", wide: true, text: func(p P) string { return stamp(p.UpdatedAt) }},
	}
}
