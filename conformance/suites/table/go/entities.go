package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var etagShape = regexp.MustCompile(`^W/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'"$`)

const never = azcore.ETag(`W/"datetime'2000-01-01T00%3A00%3A00Z'"`)

func row(properties props) []byte { return entity("p", "r", properties) }

func update(mode aztables.UpdateMode, etag *azcore.ETag) *aztables.UpdateEntityOptions {
	return &aztables.UpdateEntityOptions{UpdateMode: mode, IfMatch: etag}
}

func numbered(count int) props {
	properties := props{}
	for n := range count {
		properties[fmt.Sprintf("p%d", n)] = n
	}
	return properties
}

func entityCases() {
	test("entities: insert returns the row and its ETag, and get the same", onTable(func(c *Case, table *aztables.Client, _ string) {
		inserted := must(table.AddEntity(c.ctx, row(props{"n": 1}), nil))
		c.that(etagShape.MatchString(string(inserted.ETag)), "odd ETag %s", inserted.ETag)
		equal(c, decode(inserted.Value).Properties["n"], any(int32(1)))
		got := must(table.GetEntity(c.ctx, "p", "r", nil))
		equal(c, got.ETag, inserted.ETag)
		equal(c, decode(got.Value).ETag, string(inserted.ETag))
	}))

	test("entities: the Timestamp is set by the server", onTable(func(c *Case, table *aztables.Client, _ string) {
		old := aztables.EDMDateTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))
		must(table.AddEntity(c.ctx, row(props{"Timestamp": old}), nil))
		c.that(time.Time(get(c, table, "p", "r").Timestamp).Year() > 2000, "the client's Timestamp was taken")
	}))

	for _, format := range []struct {
		format aztables.MetadataFormat
		parts  []string
		absent []string
	}{
		{aztables.MetadataFormatNone, []string{`"n":"5"`}, []string{"odata."}},
		{aztables.MetadataFormatMinimal, []string{`"odata.etag"`, `"odata.metadata"`, `"n@odata.type":"Edm.Int64"`}, []string{"odata.id", "odata.editLink"}},
		{aztables.MetadataFormatFull, []string{`"odata.id"`, `"odata.editLink"`, `"odata.type"`, `"Timestamp@odata.type":"Edm.DateTime"`}, []string{"s@odata.type"}},
	} {
		test("entities: get and insert as "+string(format.format), onTable(func(c *Case, table *aztables.Client, _ string) {
			written := row(props{"n": aztables.EDMInt64(5), "s": "text"})
			inserted := must(table.AddEntity(c.ctx, written, &aztables.AddEntityOptions{Format: &format.format}))
			got := must(table.GetEntity(c.ctx, "p", "r", &aztables.GetEntityOptions{Format: &format.format}))
			for _, body := range []string{string(inserted.Value), string(got.Value)} {
				for _, part := range format.parts {
					c.that(strings.Contains(body, part), "no %s in %s", part, body)
				}
				for _, part := range format.absent {
					c.that(!strings.Contains(body, part), "%s in %s", part, body)
				}
			}
		}))
	}

	test("entities: insert of an existing key is EntityAlreadyExists", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(nil), nil))
		_, err := table.AddEntity(c.ctx, row(nil), nil)
		c.refused(err, http.StatusConflict, string(aztables.EntityAlreadyExists))
	}))

	test("entities: get of a missing row is ResourceNotFound", onTable(func(c *Case, table *aztables.Client, _ string) {
		_, err := table.GetEntity(c.ctx, "p", "r", nil)
		c.refused(err, http.StatusNotFound, string(aztables.ResourceNotFound))
	}))

	test("entities: merge keeps what it does not name", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(props{"a": 1, "b": 2}), nil))
		must(table.UpdateEntity(c.ctx, row(props{"b": 3}), update(aztables.UpdateModeMerge, nil)))
		equal(c, get(c, table, "p", "r").Properties, map[string]any{"a": int32(1), "b": int32(3)})
	}))

	test("entities: merge with null leaves the property as it is", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(props{"a": 1}), nil))
		must(table.UpdateEntity(c.ctx, row(props{"a": nil}), update(aztables.UpdateModeMerge, nil)))
		equal(c, get(c, table, "p", "r").Properties, map[string]any{"a": int32(1)})
	}))

	test("entities: replace drops what it does not name", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(props{"a": 1, "b": 2}), nil))
		must(table.UpdateEntity(c.ctx, row(props{"b": 3}), update(aztables.UpdateModeReplace, nil)))
		equal(c, get(c, table, "p", "r").Properties, map[string]any{"b": int32(3)})
	}))

	for _, mode := range []aztables.UpdateMode{aztables.UpdateModeMerge, aztables.UpdateModeReplace} {
		test(fmt.Sprintf("entities: %s of a missing row is ResourceNotFound", mode), onTable(func(c *Case, table *aztables.Client, _ string) {
			_, err := table.UpdateEntity(c.ctx, row(nil), update(mode, nil))
			c.refused(err, http.StatusNotFound, "ResourceNotFound")
			_, err = table.UpdateEntity(c.ctx, row(nil), update(mode, to.Ptr(never)))
			c.refused(err, http.StatusNotFound, "ResourceNotFound")
		}))

		test(fmt.Sprintf("entities: %s with the current ETag, then with the old one", mode), onTable(func(c *Case, table *aztables.Client, _ string) {
			first := must(table.AddEntity(c.ctx, row(nil), nil)).ETag
			second := must(table.UpdateEntity(c.ctx, row(props{"n": 2}), update(mode, &first))).ETag
			c.that(second != first && etagShape.MatchString(string(second)), "odd ETag %s", second)
			_, err := table.UpdateEntity(c.ctx, row(props{"n": 3}), update(mode, &first))
			c.refused(err, http.StatusPreconditionFailed, string(aztables.UpdateConditionNotSatisfied))
			equal(c, get(c, table, "p", "r").Properties["n"], any(int32(2)))
		}))

		test(fmt.Sprintf("entities: upsert by %s inserts, then updates", mode), onTable(func(c *Case, table *aztables.Client, _ string) {
			options := &aztables.UpsertEntityOptions{UpdateMode: mode}
			must(table.UpsertEntity(c.ctx, row(props{"a": 1}), options))
			etag := must(table.UpsertEntity(c.ctx, row(props{"b": 2}), options)).ETag
			want := map[string]any{"b": int32(2)}
			if mode == aztables.UpdateModeMerge {
				want["a"] = int32(1)
			}
			got := get(c, table, "p", "r")
			equal(c, got.Properties, want)
			equal(c, got.ETag, string(etag))
		}))
	}

	test("entities: delete, then again is ResourceNotFound", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(nil), nil))
		must(table.DeleteEntity(c.ctx, "p", "r", nil))
		_, err := table.DeleteEntity(c.ctx, "p", "r", nil)
		c.refused(err, http.StatusNotFound, "ResourceNotFound")
	}))

	test("entities: delete with an old ETag, then with the current one", onTable(func(c *Case, table *aztables.Client, _ string) {
		first := must(table.AddEntity(c.ctx, row(nil), nil)).ETag
		second := must(table.UpdateEntity(c.ctx, row(nil), nil)).ETag
		_, err := table.DeleteEntity(c.ctx, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &first})
		c.refused(err, http.StatusPreconditionFailed, "UpdateConditionNotSatisfied")
		must(table.DeleteEntity(c.ctx, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &second}))
	}))

	test("entities: a fetched entity can be written back as it is", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(props{"a": 1, "big": aztables.EDMInt64(5)}), nil))
		got := must(table.GetEntity(c.ctx, "p", "r", nil))
		must(table.UpdateEntity(c.ctx, got.Value, update(aztables.UpdateModeReplace, &got.ETag)))
		equal(c, get(c, table, "p", "r").Properties, map[string]any{"a": int32(1), "big": aztables.EDMInt64(5)})
	}))

	// Without the property the SDK does not even send the request.
	test("entities: a key of null is PropertiesNeedValue", onTable(func(c *Case, table *aztables.Client, _ string) {
		for _, body := range []string{`{"PartitionKey":"p","RowKey":null}`, `{"PartitionKey":null,"RowKey":"r"}`} {
			_, err := table.AddEntity(c.ctx, []byte(body), nil)
			c.refused(err, http.StatusBadRequest, "PropertiesNeedValue")
		}
	}))

	for _, bad := range []struct {
		what, code string
		properties props
	}{
		{"253 properties", "TooManyProperties", numbered(253)},
		{"a property name of 256 characters", "PropertyNameTooLong", props{strings.Repeat("n", 256): 1}},
		{"a property name that is no identifier", "PropertyNameInvalid", props{"123": 1}},
		{"an array", "InvalidInput", props{"v": []int{1}}},
		{"an object", "InvalidInput", props{"v": map[string]int{"a": 1}}},
	} {
		test("entities: "+bad.what+" is "+bad.code, onTable(func(c *Case, table *aztables.Client, _ string) {
			_, err := table.AddEntity(c.ctx, row(bad.properties), nil)
			c.refused(err, http.StatusBadRequest, bad.code)
		}))
	}

	test("entities: 252 properties fit", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(numbered(252)), nil))
		equal(c, len(get(c, table, "p", "r").Properties), 252)
	}))

	test("entities: over 1 MiB is EntityTooLarge, just under fits", onTable(func(c *Case, table *aztables.Client, _ string) {
		properties := props{}
		for n := range 15 {
			properties[fmt.Sprintf("p%d", n)] = strings.Repeat("x", 32*1024)
		}
		must(table.AddEntity(c.ctx, row(properties), nil))
		for n := range 2 {
			properties[fmt.Sprintf("q%d", n)] = strings.Repeat("x", 32*1024)
		}
		_, err := table.UpsertEntity(c.ctx, row(properties), nil)
		c.refused(err, http.StatusBadRequest, "EntityTooLarge")
	}))

	test("entities: property names keep their case and unicode letters", onTable(func(c *Case, table *aztables.Client, _ string) {
		must(table.AddEntity(c.ctx, row(props{"Name": 1, "name": 2, "größe": 3, "名前": 4}), nil))
		equal(c, get(c, table, "p", "r").Properties, map[string]any{"Name": int32(1), "name": int32(2), "größe": int32(3), "名前": int32(4)})
	}))
}
