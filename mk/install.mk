# SPDX-License-Identifier: Apache-2.0
#
# install.mk: what is installed and packed.

## manifest: write blobs/MANIFEST from this build (all archs)
manifest: $(B)/pack/MANIFEST
	$(Q)cp $< blobs/MANIFEST
$(B)/nojit.1: $(B)/nojit
	$(Q)$(EMULATOR) $(B)/nojit help --man > $@
$(B)/nojit.bash $(B)/nojit.zsh: $(B)/nojit.%: $(B)/nojit
	$(Q)$(EMULATOR) $(B)/nojit help --$* > $@

# ---- installation and packages ----
INSTALL_FILES = bin/nojit:$(B)/nojit lib/libnojit.a:$(LIBRARY) include/nojit.h:runtime/nojit.h \
	share/man/man1/nojit.1:$(B)/nojit.1 share/bash-completion/completions/nojit:$(B)/nojit.bash \
	share/zsh/site-functions/_nojit:$(B)/nojit.zsh lib/pkgconfig/nojit.pc:$(B)/nojit.pc \
	lib/nojit/bin/gen:$(GEN) lib/nojit/bin/pack:$(PACK) lib/nojit/bin/pack-shaders:$(PACK_SHADERS) lib/nojit/bin/blobcheck:$(BLOBCHECK) \
	lib/nojit/include/common.glsl:kernels/vulkan/common.glsl lib/nojit/include/grid.glsl:kernels/vulkan/grid.glsl \
	lib/nojit/nojit.mk:tools/nojit.mk lib/nojit/stamp.mk:tools/stamp.mk lib/nojit/assembler.sh:tools/assembler.sh lib/nojit/kernel.awk:tools/kernel.awk lib/nojit/blobs.S:runtime/blobs.S lib/nojit/archs.yaml:contracts/archs.yaml \
	lib/nojit/include/nojit.h:runtime/nojit.h lib/nojit/include/launcher.h:runtime/launcher.h lib/nojit/include/common.cuh:kernels/common.cuh lib/nojit/include/tiles.cuh:kernels/tiles.cuh lib/nojit/include/begin.cuh:kernels/begin.cuh \
	lib/nojit/include/base/step_state.h:base/step_state.h lib/nojit/include/base/tensor_type.h:base/tensor_type.h \
	lib/nojit/include/ref.h:kernels/ref/ref.h \
	lib/nojit/include/kernel_case.h:runtime/selftest/kernel_case.h \
	lib/nojit/libharness.a:$(B)/libharness.a lib/nojit/libkbench.a:$(B)/libkbench.a

$(B)/nojit.pc: tools/nojit.pc.in $(B)/stamp/prefix
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@OPENBLAS_DIR@|$(OPENBLAS_DIR)|' $< > $@

## install: binary, library, header, man page, completion and toolchain under PREFIX
install: all $(B)/nojit.1 $(B)/nojit.bash $(B)/nojit.zsh $(B)/nojit.pc $(B)/libharness.a $(B)/libkbench.a
	$(Q)$(foreach f,$(INSTALL_FILES),install -D -m $(if $(filter bin/% lib/nojit/bin/%,$f),755,644) \
		$(word 2,$(subst :, ,$f)) $(DESTDIR)$(PREFIX)/$(firstword $(subst :, ,$f)) &&) true
	@echo "nojit $(VERSION) is in $(DESTDIR)$(PREFIX): $(DESTDIR)$(PREFIX)/bin/nojit"
## uninstall: remove what install put there
uninstall:
	$(Q)rm -f $(foreach f,$(INSTALL_FILES),$(DESTDIR)$(PREFIX)/$(firstword $(subst :, ,$f)))
	$(Q)rmdir $(addprefix $(DESTDIR)$(PREFIX)/lib/,nojit/bin nojit/include nojit) 2>/dev/null || true
## dist: a tarball with the binary for ARCHS, its man page, SBOM and licences, and its checksum
dist: $(B)/checked $(B)/nojit.1
	$(Q)B=$(B) VERSION=$(VERSION) ARCHS="$(NJ_ARCHS)" BLOBCHECK=$(CHECKER) STRIP=$(addsuffix -,$(CROSS))strip STATIC='$(STATIC)' \
		EMULATOR='$(EMULATOR)' DOC=$(if $(CROSS),$(B)/host)/usr/share/doc scripts/dist.sh
## wheel: a wheel for pip of what dist packs, which puts nojit on PATH and depends on nvidia-cublas; needs Python and glibc <= 2.36
wheel: dist
	$(Q)python3 scripts/wheel.py $(B)/dist/nojit-$(VERSION)-$(MACHINE)-$(subst $(SPACE),-,$(strip $(NJ_ARCHS))).tar.gz manylinux_2_36 \
		$(if $(filter-out default,$(ARCHS)),$(NJ_ARCHS))
