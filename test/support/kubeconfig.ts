export function kubeconfigOf(cluster: object, user: object = {}, more: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'one', user: 'me', namespace: 'tenants' } }],
    clusters: [{ name: 'one', cluster }],
    users: [{ name: 'me', user }],
    ...more,
  };
}
