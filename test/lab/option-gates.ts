/**
 * From which minor version of Kubernetes 1 on an option of the static CPU manager needs no feature gate to be set: it is
 * beta or stable then. Before, and with those that are not listed here, it is alpha.
 * Source: pkg/kubelet/cm/cpumanager/policy_options.go of 1.32 to 1.36.
 */
const BETA_SINCE: Readonly<Record<string, number>> = {
  'full-pcpus-only': 23,
  'distribute-cpus-across-numa': 33,
  'strict-cpu-reservation': 33,
  'prefer-align-cpus-by-uncorecache': 34,
};

/** The feature gates without which a kubelet of this version does not start with these options. */
export function gatesForOptions(
  cpuOptions: Readonly<Record<string, string>>,
  version: string,
): Readonly<Record<string, boolean>> {
  const minor = Number(/^v1\.(\d+)\./.exec(version)?.[1]);
  const alpha = Object.keys(cpuOptions).some((option) => minor < (BETA_SINCE[option] ?? Number.POSITIVE_INFINITY));
  return alpha ? { CPUManagerPolicyAlphaOptions: true } : {};
}
