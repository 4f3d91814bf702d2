module github.com/brianvoe/gofakeit/v7

go 1.26
