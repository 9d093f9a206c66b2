import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import {
  createMapMemory,
  type LastMap,
  type LastMapFile,
  parseNetworkMapText,
} from '../../../node-agent/networks/map-source.ts';
import { recordingLogger } from '../support.ts';

describe('the last good network map', () => {
  const cells = CpuSet.parse('0-1');
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
  const used = (text: string | Error | undefined) => {
    const current = text === undefined || text instanceof Error ? text : map(text);
    const { override, fault, isLastGood } = use({ map: current, labels: {}, cells });
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
});
