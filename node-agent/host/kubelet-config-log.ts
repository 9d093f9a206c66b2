import type { Logger } from '../../runtime/log.ts';
import { findKubeletConfig, type KubeletConfig, type KubeletConfigFinding } from './kubelet-config.ts';

export interface KubeletConfigReading {
  readonly config: KubeletConfig | undefined;
  /** Why there is none. */
  readonly problems: readonly string[];
}

/** Reads the kubelet's configuration anew at each call, and logs what it found when that differs from the last time. */
export function createKubeletConfigReader(candidates: readonly string[], log: Logger) {
  let last = '';
  return async (): Promise<KubeletConfigReading> => {
    const findings = await findKubeletConfig(candidates);
    const found = findings.find((finding) => finding.kind === 'found');
    const problems = findings.map(describe).filter((text) => text !== undefined);
    const now = JSON.stringify([problems, found?.config]);
    if (now !== last) {
      for (const problem of problems) log.warn(problem);
      if (found !== undefined) {
        const { source, cpuManager, topologyManager, reserved } = found.config;
        log.info({ source, cpuManager, topologyManager, reserved }, 'kubelet configuration read');
      }
      last = now;
    }
    return { config: found?.config, problems: found === undefined ? problems : [] };
  };
}

function describe(finding: KubeletConfigFinding): string | undefined {
  switch (finding.kind) {
    case 'found':
      return undefined;
    case 'absent':
      return `${finding.file} does not exist; name the kubelet's configuration with --kubelet-config`;
    case 'kubeconfig':
      return `${finding.file} is a kubeconfig, not a KubeletConfiguration: passed over`;
    case 'invalid':
      return finding.error.message;
  }
}
