import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ParseError } from '../../../model/errors.ts';
import { parseAttachments, parseRef, refText } from '../../../model/networks/attachments.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { type Affinity, parseAffinities } from '../../../model/networks/interfaces.ts';
import { classifyNad, nadFacts } from '../../../model/networks/nad.ts';
import { formatPreferences, parsePreferences } from '../../../model/placement/preferences.ts';
import { vector } from '../../support/vectors.ts';
import { parsedOrRefused, type Target } from '../engine.ts';
import { almost, withLong } from '../mutation.ts';

const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?$/);
const item = fc
  .tuple(fc.option(name), name, fc.option(name))
  .map(
    ([namespace, net, device]) =>
      `${namespace === null ? '' : `${namespace}/`}${net}${device === null ? '' : `@${device}`}`,
  );
const short = fc.array(item, { maxLength: 6 }).map((items) => items.join(','));
const json = fc
  .array(fc.record({ name, namespace: name, interface: name }, { requiredKeys: ['name'] }), { maxLength: 6 })
  .map((items) => JSON.stringify(items));
export const multus: Target<string> = {
  name: 'multus',
  about: 'the networks annotation gives one attachment for each item, with the name of the item',
  inputs: withLong(
    almost(short, json, ['a,b/c@d', '[{"name":"a","namespace":"b"}]']),
    65_000,
    { piece: 'a', joint: ',' },
    { piece: 'a/b@c', joint: ',' },
    { head: 'a', piece: '-', tail: 'a' },
    { head: '[', piece: '{"name":"a"}', joint: ',', tail: ']' },
    { head: '[{"name":"a",', piece: (i) => `"${i}":0`, joint: ',', tail: '}]' },
    { piece: '[', closing: ']' },
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => parseAttachments(text, 'home'), ParseError);
    if (parsed === undefined) return 'refused';
    const list = parsed.value;
    if (text.trim() === '') assert.equal(list.length, 0);
    else if (!/[[{"]/.test(text)) assert.equal(list.length, text.split(',').length);
    else assert.equal(list.length, (JSON.parse(text) as unknown[]).length);
    for (const one of list) {
      assert.ok(typeof one.name === 'string' && one.namespace.length > 0);
      // A namespace has no slash, so a parsed reference can be written and parsed again.
      const again = parseRef(refText(one), 'other');
      if (!one.namespace.includes('/')) assert.deepEqual(again, { namespace: one.namespace, name: one.name });
    }
    return 'accepted';
  },
};
const CONFIGS = [...JSON.stringify(vector('nads.json')).matchAll(/"config":"((?:[^"\\]|\\.)*)"/g)].map(
  ([, escaped]) => JSON.parse(`"${escaped}"`) as string,
);
const KINDS = ['physnet', 'tunnel', 'device', 'none', 'unknown'];
export const nad: Target<string> = {
  name: 'nad',
  about: 'configurations of network definitions never cause an error, and always give the same class',
  inputs: withLong(
    almost(CONFIGS, fc.json({ maxDepth: 3 })),
    265_000,
    ...['{}', '{"type":1}', '{"type":"sbr","delegate":{"type":1}}', '{"type":"ovs","bridge":"b"}'].map((piece) => {
      return { head: '{"plugins":[', piece, joint: ',', tail: ']}' };
    }),
    { piece: '{"type":"sbr","delegate":', tail: '0', closing: '}' },
    { head: '{"type":"', piece: '\\n', tail: '"}' },
  ),
  judge(config) {
    const definition = { metadata: { name: 'n', namespace: 'ns' }, spec: { config } };
    const found = classifyNad(nadFacts(definition), EMPTY_CONTEXT);
    assert.ok(KINDS.includes(found.kind), `a class ${String(found.kind)}`);
    return found.kind === 'none' && found.warning !== undefined ? 'refused' : 'accepted';
  },
};

const AFFINITIES: readonly Affinity[] = ['required', 'preferred', 'none'];
const anyName = fc.oneof(fc.stringMatching(/^[a-z][-a-z0-9]{0,8}$/), fc.string({ maxLength: 4 }));
const wishes = fc
  .dictionary(anyName, fc.constantFrom(...AFFINITIES, ...AFFINITIES, 'other', 1), { maxKeys: 5 })
  .map((content) => JSON.stringify(content));
export const affinity: Target<string> = {
  name: 'numa-affinity',
  about: 'the affinity annotation gives the names and affinities that JSON.parse finds, or is refused',
  inputs: withLong(
    almost(wishes, ['{"dpdk-east":"required","mgmt":"none"}', '']),
    16_000,
    { head: '{', piece: (i) => `"${i}":"none"`, joint: ',', tail: '}' },
    { head: '{', piece: '"a":"none"', joint: ',', tail: '}' },
    { head: '{"', piece: '\\u0061', tail: '":"none"}' },
    { piece: '{"a":', closing: '}' },
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => parseAffinities(text), ParseError);
    if (parsed === undefined) return 'refused';
    const sent = text.trim() === '' ? {} : (JSON.parse(text) as Record<string, string>);
    assert.deepEqual([...parsed.value], Object.entries(sent));
    assert.ok([...parsed.value.values()].every((value) => AFFINITIES.includes(value)));
    return 'accepted';
  },
};
const placed = fc
  .record({ preferred: fc.array(anyName, { maxLength: 5 }), spansCells: fc.boolean() }, { requiredKeys: [] })
  .map((content) => JSON.stringify(content));
const NO_PREFERENCES = parsePreferences('malformed');
export const placement: Target<string> = {
  name: 'placement',
  about: 'the placement annotation never causes an error, and survives writing and reading',
  inputs: withLong(
    almost(placed, ['{"preferred":["physnet.plumbline.dev/east"],"spansCells":true}']),
    200_000,
    ...['"a"', '""', '0', '{}'].map((piece) => ({ head: '{"preferred":[', piece, joint: ',', tail: ']}' })),
    { head: '{', piece: (i) => `"${i}":[]`, joint: ',', tail: '}' },
    { piece: '[', closing: ']' },
  ),
  judge(text) {
    const read = parsePreferences(text);
    assert.deepEqual(parsePreferences(formatPreferences(read)), read);
    assert.ok(read.preferred.length <= 64);
    return read === NO_PREFERENCES ? 'refused' : 'accepted';
  },
};
