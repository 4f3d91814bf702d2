module github.com/hashicorp/hcl/v2

go 1.26

require github.com/zclconf/go-cty v1.17.0
