import type { MessageLogger, SHARED_MESSAGES } from '../../runtime/log.ts';

export const EXTENDER_MESSAGES = {
  info: {
    'the extender accepts none of the nodes that kube-scheduler asked about': 'nodes by kind of refusal',
    'pod placed': '',
    'pod removed': 'it could not start on its node',
    'paused VM resumed': 'its vCPUs are pinned',
    'agent reports again': '',
    'node report accepted again': '',
    'DPU is ready': '',
    'DPU health check off': 'the host turned it off',
    'asked KubeVirt to migrate': '',
    'this pod’s kube-scheduler leads': '',
    'this pod’s kube-scheduler no longer leads': '',
  },
  warn: {
    'agent is silent: its Lease has expired': 'check the agent’s pod',
    'node report quarantined': 'run `plumbline doctor agents`',
    'DPU is not ready': 'check the DPU and its agent',
    'pods lost their network': 'migrate or restart them',
    'migrating a VM failed; retrying': 'read `err`',
    'checking networks failed; retrying': 'check the API server',
    'node excluded for such pods': 'nothing; if often, read `reason`',
    'the kubelet did not do as predicted': '`plumbline simulate --replay`; report it',
    'pod eviction failed': 'read `err`; retried',
    'VM stays paused': 'read `message` and `err`',
    'patching a Node failed; retrying': 'check permissions and the API server',
    'reading recently bound pods failed': 'check the API server',
    'extender call refused': 'if it lasts, check the API server',
    'malformed extender call refused': 'find the caller',
  },
  error: { 'extender call failed': 'report it' },
} as const;

export type ExtenderMessages = typeof SHARED_MESSAGES & typeof EXTENDER_MESSAGES;
export type ExtenderLogger = MessageLogger<ExtenderMessages>;
