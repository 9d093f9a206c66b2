/**
 * The minor version of Kubernetes 1 from which an option of the static CPU manager needs no feature gate, because it is
 * beta or stable. Before that, and for options that are not listed, it is alpha. Source:
 * pkg/kubelet/cm/cpumanager/policy_options.go of 1.33 to 1.36.
 */
const BETA_SINCE: Readonly<Record<string, number>> = {
  'full-pcpus-only': 23,
  'distribute-cpus-across-numa': 33,
  'strict-cpu-reservation': 33,
  'prefer-align-cpus-by-uncorecache': 34,
};

/** The feature gates that a kubelet of this version needs to start with these options. */
export function gatesForOptions(
  cpuOptions: Readonly<Record<string, string>>,
  version: string,
): Readonly<Record<string, boolean>> {
  const minor = Number(/^v1\.(\d+)\./.exec(version)?.[1]);
  const alpha = Object.keys(cpuOptions).some((option) => minor < (BETA_SINCE[option] ?? Number.POSITIVE_INFINITY));
  return alpha ? { CPUManagerPolicyAlphaOptions: true } : {};
}
