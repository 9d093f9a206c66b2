import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { CpuSet } from '../../../model/cpu-set.ts';
import { NetworkMapError } from '../../../model/networks/network-map.ts';
import {
  createLastMapFile,
  createMapMemory,
  hasNodeSelectors,
  type LastMap,
  type LastMapFile,
  parseNetworkMapText,
  readNetworkMap,
} from '../../../node-agent/networks/map-source.ts';
import { recordingLogger, tempDirectories } from '../support.ts';

describe('the last good network map', () => {
  const temp = tempDirectories();
  const set = (text: string) => CpuSet.parse(text);
  const cells = set('0-1');
  const map = (text: string) => parseNetworkMapText('map.yaml', text);
  let loads: string[];
  let saves: LastMap[];
  let stored: LastMap | undefined;
  let failure: Error | undefined;
  let logged: ReturnType<typeof recordingLogger>;
  let use: ReturnType<typeof createMapMemory>;

  beforeEach(() => {
    loads = [];
    saves = [];
    stored = undefined;
    failure = undefined;
    logged = recordingLogger();
    const file: LastMapFile = {
      load: (on) => {
        loads.push(on.toString());
        return stored;
      },
      save: (last) => {
        if (failure !== undefined) throw failure;
        saves.push(last);
      },
    };
    use = createMapMemory(file, logged.log);
  });
  const used = (text: string | Error | undefined, labels: Record<string, string> | 'unknown' = {}) => {
    const current = text === undefined || text instanceof Error ? text : map(text);
    const { override, fault, isLastGood } = use({
      map: current,
      labels: labels === 'unknown' ? undefined : labels,
      cells,
    });
    return [override?.tunnel?.toString(), fault?.reason, isLastGood];
  };

  it('is loaded once, when there is a map', () => {
    stored = { networks: { physnets: new Map(), tunnel: CpuSet.parse('1') } };
    assert.deepEqual(used(undefined), [undefined, undefined, false]);
    assert.deepEqual(loads, []);
    assert.deepEqual(used(new Error('torn')), ['1', 'InvalidMap', true]);
    assert.deepEqual(used(new Error('torn')), ['1', 'InvalidMap', true]);
    assert.deepEqual(loads, ['0-1']);
    assert.deepEqual(saves, []);
  });

  it('is saved when it changes, and then in use instead of a faulty one', () => {
    assert.deepEqual(used(new Error('torn')), [undefined, 'InvalidMap', false]);
    assert.deepEqual(used('tunnel: {numaNodes: [0]}'), ['0', undefined, false]);
    assert.deepEqual(used('tunnel: {numaNodes: [0]}'), ['0', undefined, false]);
    assert.equal(saves.length, 1);
    assert.deepEqual(used('tunnel: {numaNodes: [1]}'), ['1', undefined, false]);
    assert.deepEqual(used('tunnel: {numaNodes: [7]}'), ['1', 'InvalidMap', true]);
    assert.deepEqual(used('physnets: {a: {numaNodes: [1]}}'), [undefined, undefined, false]);
    assert.deepEqual(used('physnets: {a: {numaNodes: [0]}}'), [undefined, undefined, false]);
    assert.deepEqual(used('[]'), [undefined, undefined, false]);
    assert.deepEqual(
      saves.map(({ networks }) => networks && [[...networks.physnets].map(String), networks.tunnel?.toString()]),
      [[[], '0'], [[], '1'], [['a,1'], undefined], [['a,0'], undefined], undefined],
    );
    assert.deepEqual(used(new Error('torn')), [undefined, 'InvalidMap', true], 'which selects nothing for this node');
  });

  it('stays in use if it cannot be saved, with one log line', () => {
    failure = new Error('read-only');
    for (let i = 0; i < 2; i++) assert.deepEqual(used('tunnel: {numaNodes: [1]}'), ['1', undefined, false]);
    assert.deepEqual(used(new Error('torn')), ['1', 'InvalidMap', true]);
    assert.deepEqual(
      logged.lines.map(({ level, msg }) => [level, msg]),
      [[40, 'saving the network map failed']],
    );
  });

  it('waits for the labels of the node if the map selects by labels', () => {
    assert.deepEqual(used('[]', 'unknown'), [undefined, 'NodeUnknown', false]);
    use({ map: map('tunnel: {numaNodes: [1]}'), labels: {}, cells });
    assert.deepEqual(used('[]', 'unknown'), ['1', 'NodeUnknown', true]);
  });

  it('survives a restart, even one that selects nothing for this node; an invalid file counts as missing', () => {
    const path = `${temp()}/state/network-map.json`;
    const file = createLastMapFile(path, () => undefined);
    assert.equal(file.load(set('0-1')), undefined);
    file.save({
      networks: {
        physnets: new Map([
          ['a', set('1')],
          ['b', CpuSet.EMPTY],
        ]),
        tunnel: set('0-1'),
      },
    });
    const loaded = createLastMapFile(path, () => undefined).load(set('0-1'));
    assert.deepEqual([...(loaded?.networks?.physnets ?? [])].map(String), ['a,1', 'b,']);
    assert.equal(loaded?.networks?.tunnel?.toString(), '0-1');
    assert.equal(file.load(set('0')), undefined, 'of a host with other NUMA nodes');
    file.save({ networks: undefined });
    assert.deepEqual(file.load(set('0')), { networks: undefined });
    const reasons: string[] = [];
    const reading = createLastMapFile(path, (why) => reasons.push(why));
    for (const text of ['', '[]', '{"networks":{"physnets":{"a":"x"}}}', '{'.repeat(100_000), '{"format":2}']) {
      writeFileSync(path, text);
      assert.equal(reading.load(set('0-1')), undefined, text.slice(0, 40));
    }
    assert.match(reasons.at(-1) ?? '', /it has format 2, this agent reads format 1: a later version has written it/);
  });
});

describe('the file of the network map', () => {
  const temp = tempDirectories();

  it('may be empty, and may have entries for nodes with a label', () => {
    assert.deepEqual(parseNetworkMapText('map.yaml', ''), []);
    const selected = parseNetworkMapText('map.yaml', '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [0]}}');
    assert.equal(hasNodeSelectors(selected), true);
    assert.equal(hasNodeSelectors(parseNetworkMapText('map.yaml', 'tunnel: {numaNodes: [0]}')), false);
  });

  it('refuses broken YAML', () =>
    assert.throws(() => parseNetworkMapText('map.yaml', 'physnets: {'), /^NetworkMapError: map.yaml: not YAML/));

  for (const [what, spoil] of [
    ['a pipe', (file: string) => execFileSync('mkfifo', [file])],
    ['an overlong name', (file: string) => writeFileSync(file, `{physnets: {${'x'.repeat(5000)}: {numaNodes: [-1]}}}`)],
    ['an overlong alias', (file: string) => writeFileSync(file, `a: *${'x'.repeat(5000)}`)],
  ] as const) {
    it(`gives a short error without blocking for a network map that is ${what}`, () => {
      const file = `${temp()}/map.yaml`;
      spoil(file);
      assert.throws(
        () => readNetworkMap(file),
        (error) => error instanceof NetworkMapError && error.message.length < 700,
      );
    });
  }
});
