import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import type { Random } from '../lab/random.ts';

/** A report of random content within the limits of the definition; nearly all of them are contradictory. */
export function randomReport(random: Random): Record<string, unknown> {
  const upTo = (most: number) => random.below(most + 1);
  const range = () => {
    const first = upTo(8300);
    return random.chance(0.5) ? `${first}` : `${first}-${first + upTo(random.chance(0.5) ? 15 : 8000)}`;
  };
  const list = (most: number) => Array.from({ length: 1 + upTo(most) }, range).join(',');
  const many = <T>(most: number, one: (i: number) => T) => Array.from({ length: upTo(most) }, (_, i) => one(i));
  const group = (i: number) => ({ id: random.chance(0.25) ? upTo(65_535) : i, cpus: list(20) });
  // The maximum of the definition: 65,536 characters of CPU lists in total, with at most ten characters per range.
  const containers = upTo(random.chance(0.25) ? 2048 : 16);
  const ranges = Math.min(200, Math.floor(6500 / Math.max(1, containers)));
  const assignments = Array.from({ length: containers }, (_, i) => ({
    podUID: `u${i}`,
    container: 'c',
    cpus: list(Math.max(0, ranges - 1)),
  }));
  return {
    cells: many(32, group),
    cores: many(random.chance(0.25) ? 2048 : 32, () => list(4).slice(0, 64)),
    reserved: list(10),
    sockets: many(64, group),
    uncores: many(random.chance(0.25) ? 1024 : 8, group),
    cpuManager: {
      policy: random.oneOf(['static', 'none', 'x']),
      options: { 'full-pcpus-only': random.oneOf(['true', 'false']) },
    },
    topologyManager: {
      policy: random.oneOf(['best-effort', 'restricted', 'single-numa-node', 'none']),
      scope: random.oneOf(['pod', 'container']),
    },
    assignments,
    physnets: many(256, (i) => ({ name: `p${i}`, cells: list(8) })),
    pmdCPUs: list(100),
  };
}

/** The same on consistent hardware, so that contradictions are found in later checks. */
export function onHardware(report: Record<string, unknown>, truth: NodeTopologyStatus): Record<string, unknown> {
  const { cells, cores, reserved, kubeletVersion } = truth;
  return { ...report, cells, cores, reserved, kubeletVersion, sockets: undefined, uncores: undefined };
}
