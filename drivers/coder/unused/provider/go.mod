module github.com/coder/terraform-provider-coder/v2

go 1.26
