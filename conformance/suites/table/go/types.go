package main

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// spelled reads the property v as the service wrote it.
func spelled(c *Case, table *aztables.Client) any {
	var properties map[string]any
	c.ok(json.Unmarshal(must(table.GetEntity(c.ctx, "p", "r", nil)).Value, &properties))
	return properties["v"]
}

func date(year int, month time.Month, day, hour, minute, second, nanosecond int) aztables.EDMDateTime {
	return aztables.EDMDateTime(time.Date(year, month, day, hour, minute, second, nanosecond, time.UTC))
}

func typeCases() {
	for _, one := range []struct {
		name  string
		value any
	}{
		{"empty string", ""},
		{"string with blanks at both ends", "  a b  "},
		{"string with control characters", "tab\tline\nquote\"back\\slash\x01"},
		{"string of emoji", "👩‍👩‍👧‍👦 🏳️‍🌈 𝄞"},
		{"string in five scripts", "Zürich Ελλάδα Москва 東京 القاهرة"},
		{"string like a date", "2020-01-01T00:00:00Z"},
		{"string of 64 KiB", strings.Repeat("é", 32*1024)},
		{"string of 64 KiB in emoji", strings.Repeat("😀", 16*1024)},
		{"boolean true", true},
		{"boolean false", false},
		{"int32 minimum", int32(math.MinInt32)},
		{"int32 maximum", int32(math.MaxInt32)},
		{"int64 minimum", aztables.EDMInt64(math.MinInt64)},
		{"int64 maximum", aztables.EDMInt64(math.MaxInt64)},
		{"int64 zero", aztables.EDMInt64(0)},
		{"double with a fraction", math.Pi},
		{"double maximum", math.MaxFloat64},
		{"double smallest", math.SmallestNonzeroFloat64},
		{"double beyond the int32 range, written as an integer", 1e15},
		{"date minimum", date(1601, 1, 1, 0, 0, 0, 0)},
		{"date minimum and a tick", date(1601, 1, 1, 0, 0, 0, 100)},
		{"date maximum", date(9999, 12, 31, 23, 59, 59, 999999900)},
		{"date with ticks", date(2021, 3, 4, 5, 6, 7, 123456700)},
		{"date before 1970", date(1903, 12, 17, 10, 35, 0, 0)},
		{"guid", aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833")},
		{"binary", aztables.EDMBinary{0, 1, 127, 128, 254, 255}},
		{"empty binary", aztables.EDMBinary{}},
		{"binary of 64 KiB", aztables.EDMBinary(strings.Repeat("\x00\xff\x10\x80", 16*1024))},
	} {
		test("types: "+one.name+" there and back", onTable(func(c *Case, table *aztables.Client, _ string) {
			written := aztables.EDMEntity{
				Entity:     aztables.Entity{PartitionKey: "p", RowKey: "r"},
				Properties: map[string]any{"v": one.value},
			}
			must(table.AddEntity(c.ctx, must(json.Marshal(written)), nil))
			got := get(c, table, "p", "r").Properties["v"]
			if want, isDate := one.value.(aztables.EDMDateTime); isDate {
				read, isDate := got.(aztables.EDMDateTime)
				c.that(isDate && time.Time(read).Equal(time.Time(want)), "got %v, want %v", time.Time(read), time.Time(want))
				return
			}
			equal(c, got, one.value)
		}))
	}

	// EDMEntity has no way to write or read these, so they go in the SDK's raw form.
	for _, one := range []struct {
		name, edm  string
		sent, want any
	}{
		{"double NaN", "Edm.Double", "NaN", "NaN"},
		{"double Infinity", "Edm.Double", "Infinity", "Infinity"},
		{"double -Infinity", "Edm.Double", "-Infinity", "-Infinity"},
		{"double sent as text", "Edm.Double", "3.25", 3.25},
		{"date with zeros at the end of its fraction", "Edm.DateTime", "2020-01-01T00:00:00.2000000Z", "2020-01-01T00:00:00.2Z"},
		{"date with an offset", "Edm.DateTime", "2020-01-01T02:00:00+02:00", "2020-01-01T00:00:00Z"},
		{"guid in upper case", "Edm.Guid", "C9DA6455-213D-42C9-9A79-3E9149A57833", "c9da6455-213d-42c9-9a79-3e9149a57833"},
		{"int32 with an annotation", "Edm.Int32", 7, 7.0},
		{"string with an annotation", "Edm.String", "7", "7"},
		{"boolean with an annotation", "Edm.Boolean", true, true},
	} {
		test("types: "+one.name+" comes back in the usual spelling", onTable(func(c *Case, table *aztables.Client, _ string) {
			must(table.AddEntity(c.ctx, row(props{"v": one.sent, "v@odata.type": one.edm}), nil))
			equal(c, spelled(c, table), one.want)
		}))
	}

	test("types: null is as good as absent", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(props{"gone": nil, "there": 1}), nil))
		equal(c, get(c, table, "p", "r").Properties, map[string]any{"there": int32(1)})
	}))

	for _, bad := range []struct {
		name, edm string
		value     any
		code      string
	}{
		{"a string over 64 KiB", "Edm.String", strings.Repeat("x", 32*1024+1), "PropertyValueTooLarge"},
		{"a binary over 64 KiB", "Edm.Binary", aztables.EDMBinary(make([]byte, 64*1024+1)), "PropertyValueTooLarge"},
		{"a date before 1601", "Edm.DateTime", "1600-12-31T23:59:59Z", "OutOfRangeInput"},
		{"an Int64 over its limit", "Edm.Int64", "9223372036854775808", "InvalidInput"},
		{"an Int32 over its limit", "Edm.Int32", 2147483648, "InvalidInput"},
		{"a Guid that is none", "Edm.Guid", "not-a-guid", "InvalidInput"},
		{"a DateTime that is none", "Edm.DateTime", "yesterday", "InvalidInput"},
		{"a Binary that is no base64", "Edm.Binary", "***", "InvalidInput"},
	} {
		test("types: "+bad.name+" is "+bad.code, onTable(func(c *Case, table *aztables.Client, _ string) {
			_, err := table.AddEntity(c.ctx, row(props{"v": bad.value, "v@odata.type": bad.edm}), nil)
			c.refused(err, http.StatusBadRequest, bad.code)
		}))
	}
}
