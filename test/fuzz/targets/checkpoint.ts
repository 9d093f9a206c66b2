import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { CheckpointError, parseCheckpoint } from '../../../node-agent/assignments/checkpoint.ts';
import { almost, withLong } from '../mutation.ts';
import { parsedOrRefused, type Target } from '../target.ts';
import { cpuList } from './cpus.ts';

const uid = fc.uuid();
const containers = fc.dictionary(fc.constantFrom('compute', 'sidecar', 'init'), cpuList, { maxKeys: 3 });
const file = fc
  .record(
    {
      policyName: fc.constantFrom('static', 'none'),
      defaultCpuSet: cpuList,
      entries: fc.dictionary(uid, containers, { maxKeys: 4 }),
      podEntries: fc.dictionary(uid, fc.oneof(cpuList, fc.record({ cpuSet: cpuList })), { maxKeys: 2 }),
      checksum: fc.nat(),
    },
    { requiredKeys: ['policyName', 'defaultCpuSet'] },
  )
  .map((content) => JSON.stringify(content));

const HEAD = '{"policyName":"static","defaultCpuSet":"0","entries":{';

export const checkpoint: Target<string> = {
  name: 'cpu-manager-state',
  about: 'the kubelet’s checkpoint gives the owners of its entries, without invented ones',
  inputs: withLong(
    almost(file, ['{"policyName":"static","defaultCpuSet":"0-1","entries":{"a":{"c":"2-3"}},"checksum":1}']),
    200_000,
    { head: `${HEAD}"a":{`, piece: (i) => `"c${i}":"${i}"`, joint: ',', tail: '}}}' },
    { head: HEAD, piece: (i) => `"p${i}":{"c":"65535"}`, joint: ',', tail: '}}' },
    { head: HEAD, piece: (i) => `"p${i}":{}`, joint: ',', tail: '}}' },
    { head: `${HEAD}"a":{"c":"`, piece: '0-65535', joint: ',', tail: '"}}}' },
    { head: HEAD, piece: '"a":{', closing: '}', tail: '}}' },
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => parseCheckpoint(text), CheckpointError);
    if (parsed === undefined) return 'refused';
    const { entries, owned, defaultCpus, policy } = parsed.value;
    const content = JSON.parse(text) as {
      policyName: string;
      defaultCpuSet: string;
      entries?: Record<string, Record<string, string>>;
    };
    assert.equal(policy, content.policyName);
    assert.ok(defaultCpus.equals(CpuSet.parse(content.defaultCpuSet)));
    const named = Object.entries(content.entries ?? {}).flatMap(([pod, list]) =>
      Object.entries(list).filter(([, cpus]) => cpus.trim() !== '' && pod !== ''),
    );
    assert.ok(entries.length >= named.length, 'an entry is missing');
    for (const { cpus } of entries) assert.ok(!cpus.isEmpty && cpus.isSubsetOf(owned));
    const sum = new Set(entries.flatMap(({ cpus }) => [...cpus]));
    assert.equal(owned.size, sum.size);
    return 'accepted';
  },
};
