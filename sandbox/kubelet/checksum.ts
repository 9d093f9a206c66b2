/**
 * The checksum in the kubelet's cpu_manager_state: FNV-1a over a Go dump of the struct with checksum zero.
 *
 * Source: pkg/kubelet/checkpointmanager/checksum; k8s.io/apimachinery/pkg/util/dump.
 */

type Entries = ReadonlyMap<string, ReadonlyMap<string, string>>;

export function checkpointChecksum(policyName: string, defaultCpuSet: string, entries: Entries): number {
  return fnv32a(
    `(*state.CPUManagerCheckpoint){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} ` +
      `Entries:(map[string]map[string]string)${dump(entries)} Checksum:(checksum.Checksum)0}`,
  );
}

function dump(entries: Entries): string {
  return `map[${sorted(entries)
    .map(([uid, containers]) => `(string)${uid}:(map[string]string)map[${dumpStrings(containers)}]`)
    .join(' ')}]`;
}

const dumpStrings = (map: ReadonlyMap<string, string>) =>
  sorted(map)
    .map(([key, value]) => `(string)${key}:(string)${value}`)
    .join(' ');

const sorted = <V>(map: ReadonlyMap<string, V>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

function fnv32a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
