import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: ['labextension/src/api.ts', '**/lib/**', 'labextension/style/**']
  },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: { project: ['tsconfig.json', 'tsconfig.test.json'] }
    },
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none' }],
      // Signals take a method and its object: signal.connect(this.method, this).
      '@typescript-eslint/unbound-method': 'off',
      curly: 'error',
      eqeqeq: 'error',
      'no-console': ['error', { allow: ['warn', 'error'] }]
    }
  },
  {
    files: ['labextension/src/**'],
    rules: {
      'max-lines': ['error', 400],
      'max-lines-per-function': ['error', 50]
    }
  }
);
