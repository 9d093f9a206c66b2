import { join } from 'node:path';
import { kubeletGeneration, PLUGIN_DIRECTORY } from '../device-plugin/kubelet-watch.ts';
import type { KubeletConfigSources } from '../host/kubelet-config-reader.ts';
import { readConfigz } from '../host/kubelet-configz.ts';
import type { AgentParts } from './parts.ts';

/** The sources of the kubelet's configuration, from the agent's settings. */
export function kubeletConfigSources({ config, token }: Pick<AgentParts, 'config' | 'token'>): KubeletConfigSources {
  const { kubeletConfig, kubeletConfigDir, kubeletDir, kubeletEndpoint: endpoint } = config;
  const candidates =
    kubeletConfig === undefined ? [join(kubeletDir, 'config.yaml'), '/etc/kubernetes/kubelet.conf'] : [kubeletConfig];
  const configz = async () => {
    const bearer = token();
    if (bearer === undefined) throw new Error('no bearer token for the kubelet’s configz endpoint');
    return readConfigz({ endpoint, kubeletDir, token: bearer });
  };
  return {
    candidates,
    dropIns: kubeletConfigDir,
    configz: endpoint === '' ? undefined : configz,
    generation: () => kubeletGeneration(join(kubeletDir, PLUGIN_DIRECTORY)),
  };
}
