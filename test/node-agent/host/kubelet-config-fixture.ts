import {
  isKubeconfig,
  type KubeletConfig,
  kubeletConfigOf,
  parseYaml,
} from '../../../node-agent/host/kubelet-config.ts';

/** A single file without drop-ins, in the steps of the agent's reader; undefined for a kubeconfig in its place. */
export function parseKubeletConfig(file: string, text: string): KubeletConfig | undefined {
  const document = parseYaml(file, text);
  return isKubeconfig(document) ? undefined : kubeletConfigOf(file, document);
}
