import type { Container, KubePod } from '../../sandbox/objects.ts';

/** The parts of a launcher that decide its place and its CPUs, equal for all programs that render launchers. */
export function placedBy({ metadata, spec }: KubePod): object {
  const { nodeSelector, affinity = {}, containers, initContainers = [], readinessGates } = spec;
  return {
    generateName: metadata.generateName?.slice(0, MAX_PREFIX_CHARACTERS),
    nodeSelector,
    affinity,
    containers: containers.map(partOf),
    initContainers: initContainers.map(partOf),
    readinessGates,
    networks: networksOf(metadata.annotations?.['k8s.v1.cni.cncf.io/networks']),
  };
}

/** The API server cuts generated names to this length. */
const MAX_PREFIX_CHARACTERS = 58;

/** CPUs and devices only: the overhead of memory and storage depends on the release. */
function partOf({ name, restartPolicy, resources = {} }: Container): object {
  const amounts = (side: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(
      Object.entries(side)
        .filter(([key]) => key === 'cpu' || key.startsWith('devices.kubevirt.io/'))
        .sort(([a], [b]) => a.localeCompare(b)),
    );
  return { name, restartPolicy, requests: amounts(resources.requests), limits: amounts(resources.limits) };
}

function networksOf(annotation: string | undefined): readonly string[] {
  const networks = JSON.parse(annotation ?? '[]') as { namespace: string; name: string }[];
  return networks.map(({ namespace, name }) => `${namespace}/${name}`);
}
