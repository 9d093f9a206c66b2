import assert from 'node:assert/strict';
import * as z from 'zod';
import { firstIssues } from '../../../scheduler-plugin/wire/wire.ts';

const issuesOf = (schema: z.ZodType, value: unknown) => firstIssues(schema.safeParse(value).error!);

describe('the issues in an answer', () => {
  it('are the first three, each with its path', () => {
    const schema = z.object({ a: z.object({ b: z.string() }), c: z.string(), d: z.string(), e: z.string() });
    const places = issuesOf(schema, { a: {} })
      .split('; ')
      .map((one) => one.split(':')[0]);
    assert.deepEqual(places, ['a.b', 'c', 'd']);
  });
  it('have at most 300 characters, however long the names in the call are', () => {
    const key = 'k'.repeat(1000);
    const text = issuesOf(z.strictObject({}), { [key]: 1 });
    assert.deepEqual([text.length, text.startsWith('the whole: ')], [300, true]);
  });
  it('name the whole value if there is no path', () => {
    assert.match(issuesOf(z.string(), 7), /^the whole: /);
  });
});
